"""How the page of `daydream report` looks: that nothing is cut off, lies on something else or cannot be read.
Skipped, saying so, where there is no Chromium; the exit code is then 77."""

import itertools
import json
import unittest

import browser
from pages import Pages, main

LEAST_CONTRAST = 4.5  # of text on its ground, by WCAG 2 for ordinary text
# In red, green and blue from 0 to 255; by eye, colours of small squares side by side that are nearer look alike.
LEAST_DISTANCE = 50

# What is written on the canvas of the timeline: [text, left, right, row].
WRITTEN = """(() => {
  const kept = CanvasRenderingContext2D.prototype.fillText, all = [];
  CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
    all.push([text, x, x + this.measureText(text).width, y]);
    return kept.call(this, text, x, y);
  };
  daydreamTimeline.draw();
  CanvasRenderingContext2D.prototype.fillText = kept;
  return all;
})()"""

# [contrast, text] of each square of a heat map.
CONTRASTS = """(() => {
  const pen = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const shown = (...colours) => {
    pen.clearRect(0, 0, 1, 1);
    for (const c of colours) { pen.fillStyle = c; pen.fillRect(0, 0, 1, 1); }
    return [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3).map((v) => {
      const s = v / 255;
      return s <= 0.03928 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4;
    });
  };
  const light = ([r, g, b]) => 0.2126 * r + 0.7152 * g + 0.0722 * b;
  const body = getComputedStyle(document.body).backgroundColor;
  return [...document.querySelectorAll('td.heat')].map((d) => {
    const style = getComputedStyle(d);
    const [a, b] = [light(shown(body, style.backgroundColor)), light(shown(style.color))].sort((x, y) => y - x);
    return [(a + 0.05) / (b + 0.05), d.textContent];
  });
})()"""

# Labels of the roofline and its points, as boxes.
ROOFLINE = """(() => {
  const box = (e) => { const r = e.getBoundingClientRect(); return [r.left, r.top, r.right, r.bottom]; };
  return {labels: [...document.querySelectorAll('#roof svg .label')].map((e) => [e.textContent, ...box(e)]),
          points: [...document.querySelectorAll('#roof svg circle')].map(box)};
})()"""


def overlap(a, b, least=2):
    """Whether two boxes share more than a line that is `least` thick."""
    return min(a[2], b[2]) - max(a[0], b[0]) > least and min(a[3], b[3]) - max(a[1], b[1]) > least


class Looks(Pages):
    @classmethod
    def setUpClass(cls):
        path = browser.find()
        if path is None:
            raise unittest.SkipTest("no Chromium is installed")
        super().setUpClass()
        cls.browser = browser.Browser(path)

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        super().tearDownClass()

    def open(self, path, width=1400, **how):
        self.browser.look(width, 900, **how)
        self.browser.open(path)

    def test_what_the_timeline_says_is_inside_and_apart(self):
        for width in (1400, 420):
            self.open(self.synthetic, width)
            edge = self.browser.evaluate("daydreamTimeline.canvas.clientWidth")
            written = self.browser.evaluate(WRITTEN)
            self.assertGreater(len(written), 10)
            axis = [w for w in written if w[3] == 12]
            self.assertGreater(len(axis), 1)
            for text, left, right, _ in written:
                # The line that names a side is a heading, as long as it is.
                if "(simulated" not in text and "(predicted" not in text:
                    self.assertLessEqual(right, edge + 0.5, text)
                self.assertGreaterEqual(left, 0, text)
            for one, other in itertools.pairwise(axis):
                self.assertLessEqual(one[2], other[1], (one[0], other[0]))

    def test_names_that_are_cut_end_in_a_sign(self):
        self.open(self.synthetic)
        pen = "const pen = document.createElement('canvas').getContext('2d'); pen.font = '11px system-ui, sans-serif';"
        for room in range(0, 200, 7):
            found = self.browser.evaluate(f"(() => {{ {pen} const t = cutTo(pen, 'volta_sgemm_128x64_nn', {room});"
                                          "return [t, pen.measureText(t).width]; })()")
            self.assertLessEqual(found[1], room, found)
            if found[0] not in ("", "volta_sgemm_128x64_nn"):
                self.assertTrue(found[0].endswith("\u2026") and len(found[0]) > 5, found)

    def test_colours_of_one_kind_of_row_can_be_told_apart(self):
        self.open(self.synthetic)
        for group in ("kPathColours", "kGpuColours", "kHostColours"):
            colours = self.browser.evaluate(group)
            for (a, one), (b, other) in itertools.combinations(colours.items(), 2):
                far = sum((int(one[i:i + 2], 16) - int(other[i:i + 2], 16)) ** 2 for i in (1, 3, 5)) ** 0.5
                self.assertGreater(far, LEAST_DISTANCE, (a, b))
        # All other kinds have one colour, and stand together in the legend.
        legend = self.browser.evaluate("(() => { const t = {classes: ['gemm', 'delay', 'b', 'a'], names: [0, 1, 2, 3].map((i) => [0, 0, 0, i])};"
                                       "return [...timelineLegend({timeline: t, rows: [{name: [0, 1, 2, 3]}]})[0].querySelectorAll(':scope > span')]"
                                       ".map((s) => s.textContent); })()")
        self.assertEqual(legend, ["gemm", "delay", "a, b"])
        for colour in {**self.browser.evaluate("kColours")}.values():
            self.assertIn(self.browser.evaluate(f"inkOn('{colour}')"), ("#14181d", "#ffffff"))

    def test_numbers_on_coloured_squares_can_be_read(self):
        for path in (self.sweep, self.ranks):
            for dark in (False, True):
                self.open(path, dark=dark)
                found = self.browser.evaluate(CONTRASTS)
                self.assertGreater(len(found), 3)
                for contrast, text in found:
                    self.assertGreaterEqual(contrast, LEAST_CONTRAST, (text, dark))

    def test_labels_of_the_roofline_lie_on_nothing(self):
        for width in (1400, 420):
            self.open(self.synthetic, width)
            found = self.browser.evaluate(ROOFLINE)
            labels = found["labels"]
            self.assertGreater(len(labels), 3)
            for (a, *one), (b, *other) in itertools.combinations(labels, 2):
                self.assertFalse(overlap(one, other), (a, b, width))
            if width > 1000:  # on a phone there is not always room beside the points
                for name, *box in labels:
                    for point in found["points"]:
                        self.assertFalse(overlap(box, point), (name, width))

    def of_roofline(self, roof, width, script):
        """What `script` finds in a chart `s` of this roof, which is on the page meanwhile."""
        return self.browser.evaluate(f"(() => {{ const s = rooflineChart({json.dumps(roof)}, {width}); document.body.append(s);"
                                     f"const found = {script}; s.remove(); return found; }})()")

    def test_labels_of_roofs_are_inside_however_long(self):
        self.open(self.synthetic)
        roof = {"memory_gb_per_s": 5300, "tflops": {"fp8": 2610, "fp16": 1310, "bf16": 1310, "int8": 1310, "fp32": 163},
                "classes": [{"name": "copy", "format": "", "flops": 1e9, "bytes": 2e9, "time_ns": 1e6, "kernels": 1}]}
        for width in (320, 820):
            outside = self.of_roofline(roof, width,
                                       "[...s.querySelectorAll('text')].filter((t) => t.getBoundingClientRect().right > "
                                       "s.getBoundingClientRect().right + 0.5).map((t) => t.textContent)")
            self.assertEqual(outside, [], width)

    def test_labels_of_roofs_and_of_the_axis_can_be_read(self):
        self.open(self.synthetic)
        # Rates that are near each other on the axis, and work that is far below them.
        roof = {"memory_gb_per_s": 5300, "tflops": {"nvfp4": 9000, "fp8": 2610, "bf16": 1310, "tf32": 654, "fp32": 163},
                "classes": [{"name": "copy", "format": "", "flops": 1e4, "bytes": 1e5, "time_ns": 1e6, "kernels": 1}]}
        for width in (320, 1150):
            boxes = ("[...s.querySelectorAll('{}')].map((t) => {{ const r = t.getBoundingClientRect();"
                     "return [t.textContent, r.left, r.top, r.right, r.bottom]; }})")
            roofs, texts, left = self.of_roofline(roof, width, f"[{boxes.format('text.of-roof')}, {boxes.format('text')},"
                                                               "s.getBoundingClientRect().left]")
            self.assertEqual([name.split()[0] for name, *_ in roofs], ["nvfp4", "fp8", "bf16", "tf32", "fp32"])
            for (a, *one), (b, *other) in itertools.combinations(roofs, 2):
                self.assertFalse(overlap(one, other), (a, b, width))
            for name, at, *_ in texts:
                self.assertGreaterEqual(at, left - 0.5, name)
        self.assertEqual(self.browser.evaluate("[2, 3, 6, 8, 11, 12, 15].map(rateName)"),
                         ["100", "1 k", "1 M", "100 M", "100 G", "1 T", "1000 T"])

    def test_steps_have_names_and_an_axis(self):
        self.open(self.synthetic)
        told = json.loads(self.browser.evaluate("element('whatif').textContent"))["replay"]["per_step"]
        names = self.browser.evaluate("[...document.querySelectorAll('#steps .step-names > span')].map((s) => s.textContent)")
        self.assertEqual(names, [s["step"] for s in told])
        # On a phone the number stays, by which they differ.
        self.open(self.synthetic, 390, phone=True)
        cut = self.browser.evaluate("[...document.querySelectorAll('#steps .step-names > span')].filter((s) => s.scrollWidth > s.clientWidth ||"
                                    "s.lastChild.getBoundingClientRect().width < 8 || s.lastChild.textContent === '').map((s) => s.textContent)")
        self.assertEqual(cut, [])
        scale = self.browser.evaluate("[...document.querySelectorAll('#steps .scale span')].map((s) => s.textContent)")
        self.assertEqual(scale, [self.browser.evaluate(f"time({max(s['measured_ns'] for s in told)})"),
                                 self.browser.evaluate(f"time({max(s['measured_ns'] for s in told) / 2})"), "0"])
        text = self.browser.evaluate("stepBars(['a', 'b'], [42e6, 42e6], null, null)[0].querySelector('.steps').ariaLabel")
        self.assertEqual(text.replace("\u00a0", " "), "2 steps, each 42.0 ms")

    def test_a_scenario_without_a_step_takes_no_width_from_the_bars_of_others(self):
        width = ("(() => {{ const s = document.body.appendChild(scenarioBars([{{name: 'a', step_ms: 9, speedup: 1}}, {0}], 0, null));"
                 "const w = s.querySelector('.track').getBoundingClientRect().width; s.remove(); return w; }})()")
        told = "{name: 'b', step_ms: null, error: {what: 'b: changes nothing in this trace, says a sentence of some length'}}"
        for wide in (390, 1150):
            self.open(self.synthetic, wide, phone=wide == 390)
            self.assertEqual(self.browser.evaluate(width.format(told)),
                             self.browser.evaluate(width.format("{name: 'b', step_ms: 8, speedup: 1}")), wide)

    def test_a_tiny_change_is_drawn_tiny(self):
        self.open(self.synthetic)
        width = ("(() => {{ const w = waterfall({{name: 'x', causes: [{{what: 'a', opt: 'b', delta_ns: {0}}}]}}, "
                 "{{step_ns: 1e8}}, () => null); const bar = w.querySelector('.bar.less');"
                 "return [parseFloat(bar.style.width), w.querySelectorAll('.torn').length, w.textContent]; }})()")
        tiny = self.browser.evaluate(width.format(-4e5))
        self.assertLess(tiny[0], 1)
        self.assertEqual(tiny[1], 0)
        # What is drawn larger than it is has a torn edge and says where the axis begins.
        small = self.browser.evaluate(width.format(-5e6))
        self.assertGreater(small[0], 20)
        self.assertEqual(small[1], 2)
        self.assertIn("not at 0", small[2])

    def test_what_is_wider_than_a_phone_fades_where_it_goes_on(self):
        self.open(self.synthetic, 420, phone=True)
        wide = "[...document.querySelectorAll('.wide')].filter((w) => w.scrollWidth > w.clientWidth + 1)"
        self.assertGreater(self.browser.evaluate(f"{wide}.length"), 0)
        self.browser.evaluate("new Promise((done) => { document.querySelectorAll('details').forEach((d) => { d.open = true; });"
                              "requestAnimationFrame(() => setTimeout(done, 100)); })")
        self.assertTrue(self.browser.evaluate(f"{wide}.every((w) => w.classList.contains('more') && w.tabIndex === 0)"))
        self.browser.evaluate(f"new Promise((done) => {{ const w = {wide}[0]; w.addEventListener('scroll', () => "
                              "setTimeout(done, 50), {once: true}); w.scrollLeft = 1e6; })")
        self.assertFalse(self.browser.evaluate(f"{wide}[0].classList.contains('more')"))

    def test_where_a_page_comes_from_fits_a_phone(self):
        self.open(self.synthetic, 390, phone=True)
        self.assertGreater(self.browser.evaluate("element('provenance').textContent.length"), 100)
        self.assertFalse(self.browser.evaluate("(() => { const d = document.querySelector('#provenance td');"
                                               "d.textContent = '/' + 'long'.repeat(40);"
                                               "const w = d.closest('.wide'); return w.scrollWidth > w.clientWidth + 1; })()"))

    def test_names_without_a_gap_make_no_page_wider_than_a_phone(self):
        self.open(self.advice, 390, phone=True)
        width = ("(() => { document.querySelectorAll('details').forEach((d) => { d.open = true; });"
                 "const p = document.querySelector('#advice details p'); p.textContent = 'Policy::'.repeat(40);"
                 "return document.documentElement.scrollWidth; })()")
        self.assertLessEqual(self.browser.evaluate(width), 390)

    def test_what_is_not_drawn_is_not_explained(self):
        self.open(self.synthetic)
        key = self.browser.evaluate("document.querySelector('#scenarios > p').textContent")
        self.assertEqual(key, "Lines across the ends of bars are 90 % intervals.")
        self.assertEqual(self.browser.evaluate("barsKey([{interval_ms: null, bound: true}], 5)"),
                         "Hatched bars are limits; the dashed line was measured.")

    def test_numbers_of_cards_and_names_of_options_are_in_one_line(self):
        lines = ("(() => {{ const e = {}, r = document.createRange(); e.textContent = '{}'; r.selectNodeContents(e);"
                 "return new Set([...r.getClientRects()].map((b) => Math.round(b.top))).size; }})()")
        self.open(self.synthetic, 390, phone=True)
        for text in ("~410.9\u00a0MB", "\u2265 632.5\u00a0ms"):
            self.assertEqual(self.browser.evaluate(lines.format("document.querySelector('.card .big')", text)), 1, text)
        self.open(self.advice)
        self.assertEqual(self.browser.evaluate(lines.format("document.querySelector('#advice td.name')", "fuse(what=optimizer)")), 1)

    def test_tables_on_paper_are_whole(self):
        self.open(self.synthetic)
        last = self.browser.evaluate("(() => { const rows = Array.from({length: 40}, (_, i) => ({name: `n${i}`})); rows.splice(3, 0, {name: '[7 others]'});"
                                     "const t = sortable([{title: 'name', of: (r) => r.name, text: true}], rows, 'x');"
                                     "return [[...t.querySelectorAll('td')].pop().textContent, t.querySelector('.on-paper').textContent]; })()")
        self.assertEqual(last, ["[7 others]", "26 of 41 rows; the page has them all."])
        self.browser.call("Emulation.setEmulatedMedia", media="print")
        try:
            faded = self.browser.evaluate("[...document.querySelectorAll('.wide')].filter((w) => { w.classList.add('more');"
                                          "return getComputedStyle(w).maskImage !== 'none'; }).length")
            arrows = self.browser.evaluate("[...document.querySelectorAll('th:not([aria-sort]) button')].filter((b) => "
                                           "getComputedStyle(b, '::after').content !== 'none' || getComputedStyle(b).display !== 'contents').length")
        finally:
            self.browser.call("Emulation.setEmulatedMedia", media="")
        self.assertEqual((faded, arrows), (0, 0))

    def test_rates_of_ranks_are_of_all_together(self):
        self.open(self.ranks)
        told = self.browser.evaluate("(() => { const a = answers(), s = a.all[a.main]; return [s.steps_per_s * s.step_ms, s.samples_per_s,"
                                     "element('answer').textContent.includes(`${short(1000 / s.step_ms)} steps/s`)]; })()")
        self.assertAlmostEqual(told[0], 1000, delta=1e-6)
        self.assertEqual(told[1:], [None, True])

    def test_a_gpu_without_a_name_is_not_called_unknown_where_it_is_drawn(self):
        self.open(self.synthetic)
        told = self.browser.evaluate("(() => { const d = whatif.trace.device; whatif.trace.device = ''; findings(); provenance();"
                                     "whatif.trace.device = d; return [...document.querySelectorAll('main > section')].map((s) => s.textContent).join(' '); })()")
        self.assertIn("does not name its GPU; by its size it is taken for A100", told)
        self.assertIn("not recorded, taken for A100", told)
        self.assertNotIn("nothing is known of what it can do", told)

    def test_words_are_not_broken_in_tables(self):
        self.open(self.synthetic)
        # The parameter column is as wide as its longest word.
        cut = self.browser.evaluate("[...document.querySelectorAll('#assumptions tbody tr td:nth-child(2)')]"
                                    ".filter((d) => d.scrollWidth > d.clientWidth || d.parentNode.children.length > 2 &&"
                                    "d.textContent && d.getClientRects()[0].height > 2.2 * parseFloat(getComputedStyle(d).fontSize) &&"
                                    "!d.textContent.includes(' ')"
                                    "&& (() => { const r = document.createRange(); r.selectNodeContents(d); return r.getClientRects().length > 1; })())"
                                    ".map((d) => d.textContent)")
        self.assertEqual(cut, [])
        # A number stays with its unit, also on paper.
        for made in ("time(4.25e6)", "size(4.25e6)", "percent(0.5)", "signed(1.5)", "change(-5e6)"):
            self.assertNotIn(" ", self.browser.evaluate(made), made)
        self.assertEqual(self.browser.evaluate("breakable('amp(dtype=bf16),gpu(H100)').length"), 3)

    def test_a_sentence_keeps_its_subject(self):
        self.open(self.synthetic)
        lines = self.browser.evaluate("[...whySentences({text: 'x: host work shrinks by 2 ms; 1 ms of it is lost because y; "
                                      "then bound by z', next_limiter: {what: 'z', path_ns: 5e6}}).querySelectorAll('li')].map((l) => l.textContent)")
        self.assertEqual(len(lines), 2)
        self.assertEqual(lines[0], "x: host work shrinks by 2 ms; 1 ms of it is lost because y")
        self.assertEqual(lines[1].replace("\u00a0", " "), "then bound by z, the kind of work with the most time on the critical path: 5.00 ms")
        # Findings are written by the command, in halves of sentences; on the page all are whole.
        told = self.browser.evaluate("['steps differ', 'cudaMalloc takes long', 'amp: none', '5 ms.'].map(sentence)")
        self.assertEqual(told, ["Steps differ.", "cudaMalloc takes long.", "amp: none.", "5 ms."])

    def test_a_time_looks_as_in_the_text_of_the_command(self):
        self.open(self.synthetic)
        self.assertEqual(self.browser.evaluate("[1076.1e6, 111.5e6, 4.25e6, 43.4e9, 12].map((ns) => time(ns).replace('\u00a0', ' '))"),
                         ["1076.1 ms", "111.5 ms", "4.25 ms", "43.4 s", "12 ns"])

    def test_json_is_chosen_by_words(self):
        for path in (self.synthetic, self.advice, self.ranks, self.sweep, self.scale):
            self.open(path)
            blocks = self.browser.evaluate("[...document.querySelectorAll('script[type=\"application/json\"]')].map((b) => b.id)")
            options = self.browser.evaluate("[...element('json-of').options].map((o) => [o.value, o.textContent])")
            self.assertEqual([value for value, _ in options], blocks)
            self.assertEqual(len({text for _, text in options}), len(blocks))
            for value, text in options:
                self.assertNotIn("-", text, value)

    def test_scaling_begins_with_numbers(self):
        self.open(self.scale)
        told = json.loads(self.browser.evaluate("element('scale').textContent"))["points"][-1]
        answer = self.browser.evaluate("element('answer').textContent")
        self.assertIn(f"step of {told['ranks']} GPUs", answer)
        self.assertIn(self.browser.evaluate(f"time({told['step_ms'] * 1e6})"), answer)
        self.assertIn(self.browser.evaluate(f"percent({told['efficiency']})"), answer)

    def test_a_sweep_shows_first_what_moves_the_step(self):
        self.open(self.sweep)
        self.browser.evaluate("sweepHeat([1, 2].flatMap((a) => [1, 2, 3].flatMap((b) => [1, 2].map((c) => "
                              "({values: {a: `${a}`, b: `${b}`, c: `${c}`}, step_ns: 1e6 * (10 + a + 9 * b + 3 * c), opt: 'x'})))))")
        corner = self.browser.evaluate("[...document.querySelectorAll('#heat thead th')].map((t) => t.textContent)")
        self.assertIn("b \\ c", corner)
        self.assertIn("nothing to trade" if self.browser.evaluate("document.querySelectorAll('#pareto .line').length") and
                      self.browser.evaluate("new Set([...document.querySelectorAll('#pareto tbody tr')].map((r) => r.children[1].textContent)).size") == 1
                      else "on the line", self.browser.evaluate("element('pareto').textContent"))


if __name__ == "__main__":
    main()
