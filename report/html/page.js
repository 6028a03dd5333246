// The parts of the page in their order: what to doubt first, then the answer, then why.

const about = block("about"), whatif = block("whatif"), advice = block("advise");
const scenarios = whatif.scenarios, baseline = scenarios[0], main = scenarios[whatif.main];
const known = main.step_ms !== null, changed = whatif.main > 0;

function card(label, big, more, kind) {
  return h("div", {class: "card"}, h("div", {class: "label"}, label),
           h("div", {class: `big ${kind || ""}`}, big), h("div", {class: "quiet"}, more));
}

function head() {
  document.title = `${about.title} \u00b7 daydream`;
  element("title").textContent = about.title;
  element("headline").textContent = about.headline;
}

function findings() {
  const notes = whatif.findings.map((f) => h("div", {class: "note"}, h("b", null, f.text),
    f.where && !f.text.includes(f.where) ? h("div", null, f.where) : null,
    h("div", {class: "fix"}, f.fix)));
  for (const text of whatif.warnings) notes.push(h("div", {class: "note"}, text));
  const checks = whatif.replay.checks;
  if (checks && checks.worst_pct > 3) {
    notes.push(h("div", {class: "note"}, `The replay of the unchanged trace is off: ${checks.worst}.`));
  }
  for (const s of scenarios) {
    if (s.error) notes.push(h("div", {class: "note"}, h("b", null, `${s.name}: ${s.error.what}`),
                                h("div", null, s.error.why || ""), h("div", {class: "fix"}, s.error.fix || "")));
    if (s.left_out && s.left_out.length) {
      notes.push(h("div", {class: "note"}, `${s.name} is predicted without ${s.left_out.join(", ")}: ` +
                                           "nothing to change here."));
    }
  }
  if (notes.length) section("findings", "Read this first", ...notes);
}

function headline() {
  const cards = [];
  if (baseline.step_ms === null) return;
  const off = whatif.replay.error_pct;
  cards.push(card("step as recorded", time(baseline.step_ns),
    `${whatif.steps} steps; the replay is ${digits(off, 1)} % off`));
  if (changed && known) {
    cards.push(card(`step with ${main.name}`, `${main.bound ? "\u2265 " : ""}${time(main.step_ns)}`,
      main.interval_ms ? `${range(main.interval_ms, (ms) => time(ms * 1e6))} (90 %)`
                       : main.bound ? "a limit, not a prediction" : "no interval"));
    // In colour only where the interval leaves no doubt of the direction.
    const [least, best] = main.speedup_interval || [main.speedup, main.speedup];
    const sure = main.bound ? "" : least > 1 ? "good" : best < 1 ? "bad" : "";
    cards.push(card("speed-up", `${main.bound ? "\u2264 " : ""}${times(main.speedup)}`,
      (main.speedup_interval ? `${range(main.speedup_interval, times)}, ` : "") +
      `confidence ${main.confidence}`, sure));
  }
  const bound = changed && known ? main : baseline;
  const [resource, share] = kResources.map((r) => [r, bound.bound_by[r]]).sort((a, b) => b[1] - a[1])[0];
  cards.push(card(changed ? "then bound by" : "bound by", kResourceNames[resource],
                  `${percent(share, 0)} of the critical path`));
  if (baseline.peak_memory_bytes) {
    const about_ = (s) => `${s.peak_memory_estimate ? "~" : ""}${size(s.peak_memory_bytes)}`;
    const then = changed && known && main.peak_memory_bytes ? main : baseline;
    cards.push(card("peak GPU memory", about_(then),
      then === main && changed ? `${about_(baseline)} before` : whatif.memory.source === "shapes" ?
        "an estimate from shapes" : "from recorded allocations"));
  }
  const parts = [h("div", {class: "cards"}, ...cards)];
  if (changed && known && main.explanation) parts.push(h("p", null, main.explanation.text));
  section("answer", changed ? "What it brings" : "The step", ...parts);
}

function comparison() {
  if (!changed) return;
  const measured = whatif.measured ? whatif.measured.step_ms : null;
  const columns = [["scenario", (s) => s.name], ["step", (s) => time(s.step_ns)],
    ["90 % interval", (s) => range(s.interval_ms, (ms) => time(ms * 1e6)) || "-"],
    ["speed-up", (s) => s.speedup === null ? "-" : `${s.bound ? "\u2264 " : ""}${times(s.speedup)}`],
    ["interval", (s) => range(s.speedup_interval, times) || "-"],
    ["peak memory", (s) => s.peak_memory_bytes ?
      `${s.peak_memory_estimate ? "~" : ""}${size(s.peak_memory_bytes)}` : "-"],
    ["confidence", (s) => s.confidence || "-"]];
  const table = h("div", {class: "wide"}, h("table", null,
    h("thead", null, h("tr", null, ...columns.map(([t]) => h("th", {scope: "col"}, t)))),
    h("tbody", null, ...scenarios.map((s) =>
      h("tr", null, ...columns.map(([, of]) => h("td", null, of(s))))))));
  section("scenarios", "Step time of each scenario", scenarioBars(scenarios, whatif.main, measured),
    h("p", {class: "quiet"}, "Lines across the ends of bars are 90 % intervals; hatched bars are limits" +
      (measured ? "; the dashed line was measured." : ".")),
    h("details", null, h("summary", null, "as a table"), table));
}

function causes() {
  const with_causes = scenarios.filter((s) => s.causes && s.causes.length);
  if (!with_causes.length) return;
  const place = h("div");
  const show = (s) => place.replaceChildren(waterfall(s, baseline));
  const parts = [];
  if (with_causes.length > 1) {
    const select = h("select", {"aria-label": "scenario", onchange: (e) => show(with_causes[e.target.value])},
      ...with_causes.map((s, i) => h("option", {value: i, selected: s === main}, s.name)));
    parts.push(h("div", {class: "tools"}, select));
  }
  show(with_causes.includes(main) ? main : with_causes[0]);
  section("causes", "Where the time goes", ...parts, place);
}

function advised() {
  if (!advice) return;
  const rows = advice.options, best = advice.best;
  if (!rows.length) {
    section("advice", "What to try", h("p", null,
      "No optimization that is known here saves 0.5 % of the step or more."), ...optionLimits(advice));
    return;
  }
  const bars = [advice.baseline, ...rows.slice(0, 10).map((o) => o.prediction)];
  if (best) bars.push(best.prediction);
  const first = rows[0].prediction.name;
  section("advice", "What to try", scenarioBars(bars, best ? bars.length - 1 : 1, null),
    optionTable(advice), ...optionCards(advice), ...optionLimits(advice),
    h("p", {class: "quiet"}, "Causes and timelines of one: ",
      h("code", null, `daydream report ${about.input} --opt ${first} -o ${first}.html`)));
}

function critical() {
  if (baseline.step_ms === null) return;
  section("bound", "What the step waits for", ...boundBars(changed ? scenarios : [baseline]));
}

function steps() {
  const measured = whatif.replay.per_step.map((s) => s.measured_ns);
  if (!measured.length) return;
  const predicted = changed && known ? main.steps_ms.map((ms) => ms * 1e6) : null;
  section("steps", "The steps", ...stepBars(measured, predicted));
}

function groups() {
  const parts = [["class", "kernel class"], ["op", "operator"], ["layer", "layer"], ["kernel", "kernel"],
                 ["phase", "phase"]].map(([by, title]) =>
    [title, () => groupTable(block(`summary-${by}`), block(`after-${by}`), title)]);
  parts.push(["host", () => hostTable(block("summary-host"), block("after-host"))]);
  section("tables", "One step, by work", tabs("group by", parts));
}

function roofline() {
  const roof = block("roofline");
  const draw = () => rooflineChart(roof, Math.max(300, Math.min(820, element("main").clientWidth)));
  if (!roof || !draw()) return;
  const place = h("div", null, draw());
  window.addEventListener("resize", () => place.replaceChildren(draw()));
  const peak = (c) => roof.tflops[c.format] || roof.tflops.fp32;
  const columns = [
    {title: "class", of: (c) => c.name, text: true}, {title: "format", of: (c) => c.format, text: true},
    {title: "kernels", of: (c) => c.kernels, show: count},
    {title: "TFLOP/s", of: (c) => c.flops / c.time_ns / 1e3, show: short},
    {title: "of peak", of: (c) => c.flops / c.time_ns / 1e3 / peak(c), show: (v) => percent(v)},
    {title: "GB/s", of: (c) => c.bytes / c.time_ns, show: short},
    {title: "of bandwidth", of: (c) => c.bytes / c.time_ns / roof.memory_gb_per_s, show: (v) => percent(v)},
  ];
  section("roofline", "Achieved against the data sheet",
    h("p", {class: "quiet"}, `${roof.device}: ${short(roof.memory_gb_per_s)} GB/s. Kernels of operators with ` +
      `recorded shapes, ${percent(roof.known_time_ns / roof.time_ns, 0)} of kernel time; each operand counts ` +
      "once, so more than the bandwidth can come from the cache. The area of a point is its time."),
    place, h("details", null, h("summary", null, "as a table"), sortable(columns, roof.classes, "class")));
}

async function timelines() {
  const timeline = block("timeline");
  if (!timeline || !timeline.slices) return;
  const told = h("p", {id: "slice", class: "quiet", "aria-live": "polite"}, "");
  const canvas = h("canvas", {id: "timeline", tabindex: 0, role: "application",
    "aria-label": "timelines; arrow keys go from slice to slice"});
  const part = section("timelines", "Timelines");
  let rows;
  try {
    rows = await decodeRows(timeline);
  } catch (error) {
    part.append(h("p", {class: "note"}, `This browser cannot unpack the timelines: ${error.message}`));
    return;
  }
  const help = "w s zoom, a d move, arrows go from slice to slice, Enter zooms to one, 0 shows all. " +
    "Drag to move; after a click the wheel zooms.";
  const button = (text, label, act) =>
    h("button", {type: "button", "aria-label": label, title: label, onclick: () => { act(); view.later(); }}, text);
  const search = h("input", {type: "search", placeholder: "search kernel, op, layer",
    "aria-label": "search the timelines", oninput: (e) => view.search(e.target.value),
    onkeydown: (e) => { if (e.key === "Enter") view.nextMatch(); }});
  part.append(h("div", {class: "tools"},
    button("+", "zoom in", () => view.zoom(0.5)), button("\u2212", "zoom out", () => view.zoom(2)),
    button("\u2190", "move left", () => view.pan(-0.4)), button("\u2192", "move right", () => view.pan(0.4)),
    button("one step", "show the first step that counts", () => {
      const windows = timeline.sides[0].windows;
      if (windows.length) view.view(windows[0][1], windows[0][2]);
    }),
    button("all", "show all", () => view.all()), search,
    button("next", "next match", () => view.nextMatch())),
    h("div", {class: "scroll"}, canvas), told);
  const view = new TimelineView(timeline, rows, canvas, (slice) => {
    told.textContent = slice ? view.describe(slice) : help;
  });
  told.textContent = help;
  const used = [...new Set(view.rows.flatMap((r) => [...new Set(r.name)]))].map((n) => timeline.names[n][3]);
  part.append(h("div", {class: "legend"}, ...[...new Set(used)].sort((a, b) => a - b).map((c) =>
    h("span", null, h("span", {class: "swatch", style: {background: view.colours[c]}}), timeline.classes[c]))));
  if (timeline.merged_below_ns > 0) {
    part.append(h("p", {class: "quiet"}, "To keep this file small, neighbours that take no more than " +
      `${time(timeline.merged_below_ns)} together are drawn as one.`));
  }
  if (view.left_out > 0) part.append(h("p", {class: "quiet"}, `${view.left_out} quieter rows are not drawn.`));
  window.daydreamTimeline = view;
}

function scored() {
  const m = whatif.measured;
  if (!m) return;
  const columns = [{title: "what", of: (r) => r.name, text: true}, {title: "by", of: (r) => r.by, text: true},
    {title: "before", of: (r) => r.before_ns, show: (v) => time(v)},
    {title: "predicted", of: (r) => r.predicted_ns, show: (v) => time(v)},
    {title: "measured", of: (r) => r.measured_ns, show: (v) => time(v)}];
  section("measured", "Predicted against measured",
    h("p", null, `${m.scenario}: predicted ${time(main.step_ns)}, measured ${time(m.step_ms * 1e6)} in ${m.file}; ` +
      `${digits(m.error_pct, 1)} % off, ${m.inside_interval ? "inside" : "outside"} the interval.`),
    sortable(columns, m.misses, "what"));
}

function assumed() {
  const rows = scenarios.filter((s) => s.step_ms !== null).flatMap((s) => [
    ...(s === baseline ? [] : [[s.name, `confidence ${s.confidence}: ${s.confidence_why}`]]),
    ...s.notes.map((text) => [s.name, text]), ...s.warnings.map((text) => [s.name, text])]);
  if (!rows.length) return;
  // Each text once, at the first scenario that it belongs to, and each name once.
  const said = new Set(), kept = rows.filter(([, text]) => !said.has(text) && said.add(text));
  section("assumptions", "Assumptions", h("div", {class: "wide"}, h("table", null, h("tbody", null,
    ...kept.map(([name, text], i) => h("tr", null,
      h("td", {class: "text"}, i > 0 && kept[i - 1][0] === name ? "" : name),
      h("td", {class: "text"}, text)))))));
}

function provenance() {
  const t = whatif.trace;
  const facts = [["made by", about.version], ["command", about.command], ["trace", t.file],
    ["format", t.format + (t.synthetic ? ", synthetic" : "")], ["device", t.device || "not recorded"],
    ["events", `${count(t.events)} of ${count(t.input_events)} read`], ["steps by", t.step_method],
    ["replay", `${time(whatif.replay.simulated_ms * 1e6)} simulated, ${time(whatif.replay.measured_ms * 1e6)} measured`]];
  const buttons = ["whatif", "advise", "summary-class", "summary-layer", "roofline"].filter(element).map((id) => {
    const made = h("button", {type: "button"}, `copy ${id} JSON`);
    made.addEventListener("click", () => copy(element(id).textContent, made));
    return made;
  });
  section("provenance", "Where this comes from", h("div", {class: "wide"}, h("table", null, h("tbody", null,
    ...facts.map(([name, text]) => h("tr", null, h("th", {class: "text", scope: "row"}, name),
                                     h("td", {class: "text"}, text)))))),
    h("div", {class: "tools"}, ...buttons));
  element("footer").textContent = "One file, which loads nothing. Times before are replayed from the " +
    "recording, times after are predicted; neither is a measurement.";
}

head();
findings();
headline();
comparison();
causes();
advised();
critical();
steps();
groups();
roofline();
timelines().then(() => {
  scored();
  assumed();
  provenance();
  document.body.dataset.drawn = "yes";
});
