"""What a browser makes of the page of `daydream report`. Skipped, saying so, where there is no Chromium; the
exit code is then 77."""

import json
import os
import sys
import unittest

import browser
from made_traces import HALF_A_MILLION, HOSTILE, big_trace
from packed import blocks, slices_of
from pages import RANKS, SYNTHETIC, Pages, interrupted, main, run

MOST_BYTES = 1.5e6  # of a file with half a million slices


class InABrowser(Pages):
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

    def calm(self):
        self.assertEqual(self.browser.requests(), [])
        self.assertEqual(self.browser.complaints(), [])

    def test_every_control_works_without_a_complaint(self):
        page = self.browser
        page.look(1200, 900)
        page.open(self.synthetic)
        self.assertIn("amp + fuse", page.evaluate("element('answer').textContent"))
        buttons = page.evaluate("document.querySelectorAll('button').length")
        self.assertGreater(buttons, 20)
        # Tabs first, each of which brings other headings to click.
        for tab in range(page.evaluate("document.querySelectorAll('[role=tab]').length")):
            page.evaluate(f"document.querySelectorAll('[role=tab]')[{tab}].click()")
            page.evaluate("document.querySelectorAll('button:not([role=tab])').forEach(b => b.click())")
        page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
        page.evaluate("document.querySelectorAll('select').forEach(s => { s.selectedIndex = 0;"
                      "s.dispatchEvent(new Event('change')); })")
        self.calm()

    def test_tables_are_sorted_by_what_is_clicked(self):
        page = self.browser
        page.open(self.synthetic)
        page.evaluate("document.querySelectorAll('[role=tab]')[3].click()")
        column = ("[...document.querySelectorAll('#tables tbody tr')]"
                  ".map(r => parseFloat(r.children[3].textContent.replaceAll(',', '')))")
        page.evaluate("document.querySelectorAll('#tables th button')[3].click()")
        calls = page.evaluate(column)
        self.assertGreater(len(calls), 5)
        self.assertEqual(calls, sorted(calls, reverse=True))
        page.evaluate("document.querySelectorAll('#tables th button')[3].click()")
        calls = page.evaluate(column)
        self.assertEqual(calls, sorted(calls))

    def test_a_page_that_was_interrupted_says_so_first_and_shows_what_is_done(self):
        page = self.browser
        asked = [word for i in range(2000) for word in ("--opt", f"speedup(kind:gpu,1.{10_000 + i})")]
        for trace, name in ((SYNTHETIC, "part.html"), (RANKS, "ranks-part.html")):
            path = os.path.join(self.folder.name, name)
            interrupted("predicting 3 of", "report", trace, *asked, "-j1", "-o", path)
            page.open(path)
            first = page.evaluate("document.querySelector('main .note').textContent")
            self.assertRegex(first, r"^This page is not whole: it was interrupted; [0-9,]+ of 2,000 scenarios are not done: speedup")
            bars = page.evaluate("[...document.querySelectorAll('#scenarios .bars .label')].map((b) => b.textContent)")
            self.assertEqual(bars[0], "baseline")
            self.assertGreaterEqual(len(bars), 4)
            # Nothing is drawn of what is not there.
            self.assertEqual(page.evaluate("['tables', 'roof', 'timelines'].filter((id) => element(id))"), [])
            self.calm()

    def test_a_sweep_that_was_interrupted_says_so(self):
        page, found, path = self.browser, *(os.path.join(self.folder.name, "part" + end) for end in (".json", "-sweep.html"))
        interrupted("sweeping 3 of", "sweep", SYNTHETIC, "--opt", "speedup(kind:gpu,1..99999)", "--no-interval", "-j1",
                    "--format", "json", "-o", found)
        run("report", found, "-o", path)
        page.open(path)
        self.assertIn("It was interrupted: some rows were not done", page.evaluate("element('answer').textContent"))
        page.open(self.sweep)
        self.assertNotIn("interrupted", page.evaluate("element('answer').textContent"))
        self.calm()

    def test_the_keyboard_moves_the_timeline(self):
        page = self.browser
        page.open(self.synthetic)
        page.evaluate("element('lanes').focus()")
        span = "daydreamTimeline.to - daydreamTimeline.from"
        whole = page.evaluate(span)
        page.press("w")
        self.assertAlmostEqual(page.evaluate(span), 0.6 * whole, delta=whole * 1e-6)
        page.press("0")
        self.assertEqual(page.evaluate(span), whole)
        for key in ("ArrowDown", "ArrowRight", "Enter"):
            page.press(key)
        self.assertRegex(page.evaluate("element('slice').textContent"), " at .* (GPU|thread|critical path)")
        self.assertLess(page.evaluate(span), whole)
        self.calm()

    def test_the_advice_is_a_table_with_how_to_try_each(self):
        page = self.browser
        told = json.loads(run("advise", SYNTHETIC, "--format", "json"))
        page.open(self.advice)
        column = "[...document.querySelectorAll('#advice tbody tr')].map(r => r.children[0].textContent)"
        rows = []
        for option in told["options"]:
            rows += [option["prediction"]["name"]] + ["or " + w["prediction"]["name"] for w in option.get("other_ways", [])]
        rows += ["best set"] if told["best"] else []
        found = page.evaluate(column)
        self.assertEqual(found[:len(rows)], rows[:25])
        # Bars are in the order of the table, by the same names.
        bars = page.evaluate("[...document.querySelectorAll('#advice .bars .label')].map((b) => b.textContent)")
        self.assertEqual(bars, ["baseline"] + [name for name in rows if not name.startswith("or ")])
        for option in told["options"]:
            self.assertIn(option["check"].replace(os.path.dirname(SYNTHETIC) + "/", ""), page.evaluate("element('advice').textContent"))
            self.assertIn(option["how"], page.evaluate("element('advice').textContent"))
        page.evaluate("document.querySelectorAll('#advice details').forEach(d => { d.open = true; })")
        page.evaluate("document.querySelectorAll('#advice button').forEach(b => b.click())")
        self.calm()

    # How quick it is asks tests/bench/page_bars.py.
    def test_half_a_million_slices_are_small_and_all_there(self):
        trace, path = (os.path.join(self.folder.name, "big" + end) for end in (".json", ".html"))
        with open(trace, "w", encoding="utf-8") as file:
            json.dump(big_trace(**HALF_A_MILLION), file)
        run("report", trace, "--opt", "free-launch", "-o", path)
        told = blocks(self.text(path))["timeline"]
        self.assertGreater(told["slices"], 490_000)
        self.assertEqual(told["merged_below_ns"], 0)
        self.assertLess(os.path.getsize(path), MOST_BYTES)
        page = self.browser
        page.look(1300, 900)
        page.open(path)
        self.assertEqual(page.evaluate("daydreamTimeline.rows.reduce((sum, r) => sum + r.slices, 0)"), told["slices"])
        self.calm()  # the browser has a word on reading pictures back
        # The last kernel of each side is found, and fills the picture.
        for side in (0, 1):
            found = page.evaluate(f"(() => {{ const v = daydreamTimeline, row = v.rows.find((r) => r.side === {side} && r.title.startsWith('GPU'));"
                                  "const i = row.slices - 1; v.select({row, i}); v.view(row.begin[i], row.end[i]); v.draw();"
                                  "return [v.nameOf(row, i).name, v.canvas.getContext('2d').getImageData(v.canvas.clientWidth / 2, row.y + 3, 1, 1).data[3],"
                                  "element('slice').textContent]; })()")
            self.assertRegex(found[0], r"^void kernel_\d+<float, \d>")
            self.assertEqual(found[1], 255, found)
            self.assertIn(found[0], found[2])

    def test_the_page_decodes_what_is_packed(self):
        page = self.browser
        page.open(self.synthetic)
        told = [[s[0], s[1], s[3], s[4]] for _, _, slices in
                slices_of(blocks(self.text(self.synthetic))["timeline"]) for s in slices]
        found = page.evaluate("decodeRows(block('timeline')).then(rows => rows.flatMap(r =>"
                              "Array.from(r.begin, (b, i) => [b, r.end[i], r.tasks[i], r.cause[i]])))")
        self.assertEqual(len(found), len(told))
        self.assertTrue(found == told)

    def test_causes_and_the_path_lead_into_the_timeline(self):
        page = self.browser
        page.open(self.synthetic)
        page.evaluate("document.querySelector('#causes button.link').click()")
        self.assertGreater(page.evaluate("daydreamTimeline.cause"), 0)
        self.assertIn("changed by", page.evaluate("element('related').textContent"))
        page.evaluate("daydreamTimeline.showCause(0)")
        page.evaluate("daydreamTimeline.select({row: daydreamTimeline.rows[0], i: 3})")
        self.assertGreater(page.evaluate("element('related').querySelectorAll('button').length"), 0)
        page.evaluate("element('related').querySelector('button').click()")
        self.assertNotEqual(page.evaluate("daydreamTimeline.selected.row.title"), "critical path")
        self.calm()

    def test_ranks_wait_for_each_other_on_the_page(self):
        page = self.browser
        page.open(self.ranks)
        told = blocks(self.text(self.ranks))["ranks"]
        text = page.evaluate("element('together').textContent")
        self.assertIn("Who waits for whom", text)
        self.assertIn("sums over the recorded window", text)
        self.assertIn("need not be the one that came late", text)
        self.assertIn("rank 1 alone", page.evaluate("element('steps').textContent"))
        for r in told["ranks"]["recorded"]:
            self.assertIn(f"rank {r}", text)
        step = page.evaluate(f"time({told['scenarios'][0]['step_ns']})")
        self.assertIn(step, page.evaluate("element('answer').textContent"))
        self.assertIn("played together", page.evaluate("element('answer').textContent"))
        self.calm()

    def test_answers_of_ranks_are_theirs_on_the_page(self):
        page, path = self.browser, os.path.join(self.folder.name, "late.html")
        run("report", RANKS, "--opt", "straggler(0,host=0.9)", "-f", "-o", path)
        page.open(path)
        told = blocks(self.text(path))["ranks"]["scenarios"][-1]
        answer = page.evaluate("element('answer').textContent")
        self.assertIn(page.evaluate(f"time({told['step_ns']})"), answer)
        self.assertIn("there, what you asked about is not predicted", answer)
        self.assertIn(f"confidence {told['confidence']}", answer)
        self.assertEqual(page.evaluate("element('findings')?.textContent.includes('straggler') ?? false"), False)
        self.calm()
        # One that fails shows nothing of what one rank says.
        run("report", RANKS, "--opt", "bandwidth(x2)", "--opt", "straggler(5,host=0.9)", "-f", "-o", path, status=4)
        page.open(path)
        self.assertIn("straggler", page.evaluate("element('findings').textContent"))
        failed = page.evaluate("JSON.stringify(answers().all.at(-1))")
        for key in ("step_ms", "step_ns", "interval_ms", "speedup", "speedup_interval", "confidence"):
            self.assertIsNone(json.loads(failed)[key], key)
        self.calm()
        run("report", RANKS, "-f", "-o", path)
        page.open(path)
        self.assertIn("Each on all ranks, which are played together.", page.evaluate("element('advice').textContent"))
        self.calm()

    def test_large_sweeps_and_odd_axes_are_drawn(self):
        page = self.browser
        page.open(self.sweep)
        self.assertEqual(page.evaluate("extremes(Array(500000).fill(3))"), [3, 3])
        page.evaluate("globalThis.many = Array.from({length: 10000}, (_, i) => "
                      "({values: {a: `${i % 100}`, b: `${Math.floor(i / 100)}`}, step_ns: i + 1, opt: 'x'}))")
        page.evaluate("globalThis.map_ = heatMap(many, 'a', 'b')")
        self.assertEqual(page.evaluate("map_.querySelectorAll('td').length"), 1600)
        self.assertIn("first 40 of 100 and of 100 values", page.evaluate("map_.textContent"))
        self.assertEqual(page.evaluate("(() => { const p = [[1, 5], [2, 3], [2, 3], [2, 4], [3, 3], [4, 1]].map(([x, y]) => ({x, y}));"
                                       "markBest(p); return p.map((q) => q.best); })()"), [True, True, True, False, False, True])
        self.assertEqual(page.evaluate("ticks(0, 8, 5, true)"), [])
        self.assertEqual(page.evaluate("ticks(1, 8, 5, true)"), [1, 2, 4, 8])
        self.assertEqual(page.evaluate("ticks(0, 10, 5)"), [0, 2, 4, 6, 8, 10])
        for span in ("0, Infinity", "NaN, 1", "5, 4", "-Infinity, 0"):
            self.assertEqual(page.evaluate(f"ticks({span}, 5)"), [])
        self.assertLessEqual(page.evaluate("ticks(1e18, 1e18 + 128, 5).length"), 100)

    def test_a_timeline_that_is_cut_is_said_to_be(self):
        page = self.browser
        page.open(self.synthetic)
        said = page.evaluate("(async () => { const t = block('timeline'); t.sides[1].rows.at(-1).slices += 5000;"
                             "try { await decodeRows(t); return ''; } catch (e) { return e.message; } })()")
        self.assertIn("cut", said)

    def test_a_cause_out_of_view_is_shown(self):
        page = self.browser
        page.open(self.synthetic)
        page.evaluate("daydreamTimeline.view(daydreamTimeline.length - 30, daydreamTimeline.length)")
        page.evaluate("document.querySelector('#causes button.link').click()")
        self.assertTrue(page.evaluate("(({selected: {row, i}, from, to}) => row.begin[i] < to && row.end[i] > from)(daydreamTimeline)"))

    def test_a_cause_without_slices_hides_nothing(self):
        page = self.browser
        page.open(self.synthetic)
        page.evaluate("daydreamTimeline.showCause(1 + daydreamTimeline.timeline.causes.length)")
        self.assertEqual(page.evaluate("daydreamTimeline.cause"), 0)
        # Every link leads to slices.
        links = page.evaluate("document.querySelectorAll('#causes button.link').length")
        self.assertGreater(links, 0)
        for i in range(links):
            page.evaluate(f"document.querySelectorAll('#causes button.link')[{i}].click()")
            self.assertGreater(page.evaluate("daydreamTimeline.cause"), 0)

    def test_a_sum_of_host_rows_has_no_inside(self):
        page = self.browser
        page.open(self.synthetic)
        row = ("(() => { const s = {window_ns: 1e6, groups: [{name: '[3 others]', kind: 'outside', self_ns: 5, waiting_ns: 1,"
               "total_ns: 0, calls: 2, critical_path_ns: 1}]}; return [...hostTable(s, null).querySelectorAll('td')]"
               ".map((d) => d.textContent); })()")
        self.assertEqual(page.evaluate(row)[4], "-")

    def test_a_sweep_and_a_scaling_curve_are_drawn(self):
        page = self.browser
        page.open(self.sweep)
        self.assertEqual(page.evaluate("document.querySelectorAll('#heat td.heat').length"), 4)
        self.assertGreater(page.evaluate("document.querySelectorAll('#pareto circle').length"), 3)
        page.evaluate("document.querySelectorAll('button').forEach(b => b.click())")
        self.calm()
        page.open(self.scale)
        self.assertEqual(page.evaluate("document.querySelectorAll('#curves circle').length"), 6)
        self.calm()

    def test_rows_of_a_sweep_begin_with_their_step(self):
        page = self.browser
        page.open(self.sweep)
        titles = page.evaluate("[...document.querySelectorAll('#rows thead th')].map((t) => t.textContent)")
        self.assertEqual(titles[:2], ["options", "step"])
        self.assertEqual(titles[-2:], ["amp.dtype", "prefetch.workers"])

    def test_why_a_number_of_gpus_has_no_answer_is_told(self):
        path = os.path.join(self.folder.name, "lost.html")
        found = os.path.join(self.folder.name, "lost.json")
        run("scale", SYNTHETIC, "--fabric", "nvlink4", "--ranks", "8,16", "--format", "json", "-o", found, status=4)
        run("report", found, "-o", path)
        page = self.browser
        page.open(path)
        with open(found, encoding="utf-8") as file:
            why = json.load(file)["points"][1]["what"]
        self.assertEqual(page.evaluate("document.querySelector('#points .note').textContent"),
                         f"Not predicted for 16 GPUs: {why} (E0823).")

    def test_findings_of_ranks_are_of_all_of_them(self):
        page = self.browser
        page.open(self.ranks)
        told = page.evaluate("(() => { together.findings = [{kind: 'op_stalls', text: 'rank 1: late', where: '', fix: 'x'}];"
                             "whatif.findings = [{kind: 'op_stalls', text: 'of one alone', where: '', fix: 'x'},"
                             "{kind: 'waits_for_ranks', text: 'waits', where: '', fix: 'x'}]; element('main').replaceChildren(); findings();"
                             "return [...document.querySelectorAll('#findings .note b')].map((t) => t.textContent); })()")
        self.assertEqual(told[:2], ["Rank 1: late.", "Of one rank alone: waits."])
        self.assertNotIn("of one alone", told)

    def test_rows_of_other_batches_are_compared_by_the_example(self):
        page = self.browser
        page.open(self.sweep)
        rows = ("[[1, 100, 1, 1], [2, 150, 0.66, 1.32]].map(([size, step_ns, speedup, throughput_gain]) => "
                "({values: {size: `x${size}`, b: '1'}, step_ns, speedup, throughput_gain, memory_change_bytes: size, opt: 'x'}))")
        page.evaluate(f"element('main').replaceChildren(); sweepHeat({rows}); sweepTable({rows})")
        squares = "[...document.querySelectorAll('#heat td.heat')].map((t) => t.textContent)"
        self.assertEqual(page.evaluate(squares), ["100\u00a0ns", "75\u00a0ns *"])
        self.assertIn("throughput", page.evaluate("element('rows').textContent"))
        self.calm()

    def test_copied_numbers_have_their_unit(self):
        page = self.browser
        page.open(self.sweep)
        page.evaluate("copy = (text) => { window.copied = text; }; document.querySelector('#pareto button.csv').click()")
        self.assertEqual(page.evaluate("window.copied.split('\\n')[0]"), "row,\"step, ns\",\"memory, bytes\"")
        page.evaluate("element('main').replaceChildren(sortable([{title: 'who', of: (r) => r.a, text: true}, {title: 'size', of: (r) => r.b, show: size}],"
                      "[{a: 'x', b: 2e9}], 'n')); document.querySelector('button.csv').click()")
        self.assertEqual(page.evaluate("window.copied"), "who,\"size, bytes\"\nx,2000000000\n")

    def test_values_that_never_meet_make_no_map(self):
        page = self.browser
        page.open(self.sweep)
        # As of --opt 'a(1..2)' --opt 'b(1..2),c(1..2)': no row has a value of a and one of b.
        page.evaluate("element('main').replaceChildren(); sweepHeat([[{a: '1'}, 9], [{a: '2'}, 1], ...[1, 2].flatMap((b) => [1, 2].map((c) => "
                      "[{b: `${b}`, c: `${c}`}, 4 + b + c]))].map(([values, step_ns]) => ({values, step_ns, opt: 'x'})))")
        squares = "[...document.querySelectorAll('#heat td.heat')].map((t) => t.textContent)"
        self.assertEqual(page.evaluate(squares), ["9\u00a0ns", "1\u00a0ns *"])
        page.evaluate("(() => { const s = document.querySelector('#heat select'); s.value = 'b'; s.dispatchEvent(new Event('change')); })()")
        self.assertEqual(page.evaluate("document.querySelectorAll('#heat td.heat').length"), 2)
        page.evaluate("element('main').replaceChildren(); pareto([1, 2].map((step_ns) => ({step_ns, memory_change_bytes: 0, opt: 'x'})))")
        self.assertEqual(page.evaluate("document.querySelectorAll('#pareto circle').length"), 0)
        self.assertIn("nothing to trade", page.evaluate("element('pareto').textContent"))
        self.calm()

    def test_paper_is_light_and_has_everything_unfolded(self):
        page = self.browser
        page.look(1200, 900, dark=True)
        page.open(self.synthetic)
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        self.assertEqual(page.evaluate("document.querySelectorAll('details:not([open])').length"), 0)
        # What is behind tabs is on paper as well.
        titles = page.evaluate("[...document.querySelectorAll('#tables h3')].map((t) => t.textContent)")
        self.assertEqual(titles, page.evaluate("[...document.querySelectorAll('#tables [role=tab]')].map((t) => t.textContent)"))
        self.assertEqual(page.evaluate("getComputedStyle(document.body).backgroundColor"), "rgb(255, 255, 255)")
        page.call("Emulation.setEmulatedMedia", media="print")
        self.assertGreater(page.evaluate("(() => { const r = document.createRange(); r.selectNodeContents(document.querySelector('#tables th'));"
                                         "return r.getBoundingClientRect().width; })()"), 0)
        hint = "getComputedStyle(element('slice')).display"
        self.assertEqual(page.evaluate(hint), "none")  # how to click
        page.evaluate("daydreamTimeline.select({row: daydreamTimeline.rows[0], i: 0}, true)")
        self.assertEqual(page.evaluate(hint), "block")  # what was clicked
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        self.assertGreater(page.evaluate("document.querySelectorAll('details:not([open])').length"), 0)
        page.call("Emulation.setEmulatedMedia", media="")
        self.calm()

    def test_nothing_waits_for_the_timelines(self):
        page = self.browser
        page.open(self.synthetic)
        # Drawn anew, with a timeline that is never unpacked.
        page.evaluate("globalThis.decodeRows = () => new Promise(() => {}); element('main').replaceChildren(); void draw()")
        self.assertIsNotNone(page.evaluate("element('provenance')?.id ?? null"))
        order = page.evaluate("[...document.querySelectorAll('main > section')].map((s) => s.id)")
        self.assertLess(order.index("timelines"), order.index("assumptions"))

    def test_names_of_the_trace_run_nothing(self):
        page = self.browser
        page.open(self.hostile)
        for tab in range(page.evaluate("document.querySelectorAll('[role=tab]').length")):
            page.evaluate(f"document.querySelectorAll('[role=tab]')[{tab}].click()")
        self.assertEqual(page.evaluate("typeof window.hacked"), "undefined")
        self.assertEqual(page.evaluate("document.querySelectorAll('img').length"), 0)
        self.assertEqual(page.evaluate("element('title').textContent"), HOSTILE)
        self.calm()

    def test_a_phone_needs_no_scrolling_sideways(self):
        page = self.browser
        page.look(360, 740, dark=True, phone=True)
        for path in (self.synthetic, self.hostile, self.advice, self.ranks, self.sweep, self.scale):
            page.open(path)
            self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth"), 360)
        self.assertEqual(page.evaluate("getComputedStyle(document.body).backgroundColor"), "rgb(20, 24, 29)")


if __name__ == "__main__":
    main()
