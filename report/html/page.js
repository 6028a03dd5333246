// The parts of the page in their order: what to doubt first, then the answer, then why.

const about = block("about"), advice = block("advise");
/** @type {WhatIf | null} */
const whatif = block("whatif");
const scenarios = whatif ? whatif.scenarios : [], baseline = scenarios[0], main = whatif ? scenarios[whatif.main || 0] : null;
const known = main !== null && main.step_ms !== null, changed = whatif !== null && whatif.main > 0;

function card(label, big, more, kind) {
  return h("div", {class: "card"}, h("div", {class: "label"}, label),
           h("div", {class: `big ${kind || ""}`}, big), h("div", {class: "quiet"}, more));
}

function head() {
  document.title = `${about.title} \u00b7 daydream`;
  element("title").textContent = about.title;
  element("headline").textContent = about.headline;
}

// What a part of the page is of, where there are several ranks and it holds for one.
function ofRank(title) { return together ? `${title}: rank ${about.rank} alone` : title; }

// "amp: no matrix product": once, where the text begins with the name.
function named(name, text) { return text.startsWith(`${name}: `) ? text : `${name}: ${text}`; }

// The explanation is a list of halves of sentences: each becomes a line.
/** @param {Explanation} explanation */
function whySentences({text, next_limiter: next}) {
  const parts = [];
  for (const part of text.split("; ")) {
    // "5.81 ms of it is lost ..." says nothing without what is before it.
    if (parts.length && / of it /.test(part.split(" because ")[0])) parts.push(`${parts.pop()}; ${part}`);
    else if (next && part === `then bound by ${next.what}`) parts.push(`${part}, the kind of work with the most time on the critical path: ${time(next.path_ns)}`);
    else parts.push(part);
  }
  if (parts.length === 1) return h("p", null, text);
  return h("ul", {class: "why"}, ...parts.map((part) => h("li", null, part)));
}

const kNoDevice = "The recording does not say which GPU it is, so nothing is known of what it can do. Profilers of PyTorch 1.9 and newer " +
  "write it down; to ask for another GPU, name this one: --opt 'gpu(H100, from=V100)'.";
// The GPU of the data sheet that the chart of rates uses, where there is one.
function takenFor() { const roof = block("roofline"); return roof ? roof.device : ""; }
// As in the findings (report/questions/findings.cc): what takes a tenth of a step is worth a sentence.
const kWorthANote = 0.1;

// What the numbers below rest on, beside the findings: [text, how to mend it].
function caveats() {
  const told = [];
  const ofLoader = allFindings().some((f) => f.kind === "loader");
  if (known && !together && !ofLoader && baseline.bound_by.data > kWorthANote) {
    told.push([`${percent(baseline.bound_by.data, 0)} of the step waits for data.`, "workers that make batches ahead: --opt prefetch"]);
  }
  if (whatif.trace.device === "") told.push([takenFor() ? `The recording does not name its GPU; by its size it is taken for ${takenFor()}.` : kNoDevice, ""]);
  const repeated = whatif.replay.checks && whatif.replay.checks.repeated;
  if (repeated && Math.abs(repeated.worst_error_pct) > 100 * kWorthANote) {
    told.push([`The checks of the replay hold in the mean, not for each step: ${repeated.worst_step}, played by itself, is ` +
      `${signed(repeated.worst_error_pct)} off.`, "predictions are of the mean step"]);
  }
  const unchecked = known && changed ? main.unchecked_pct : null;
  if (unchecked > 100 * kWorthANote) {
    told.push([`${digits(unchecked, 0)} % of the GPU time comes from kernels the model was never checked on.`, ""]);
  }
  if (known && !together) for (const text of baseline.notes) told.push([sentence(text), ""]);
  return told;
}

// Of all ranks, where they answer: what is said of one alone is not said of the step.
function allFindings() {
  if (!together) return whatif.findings;
  return [...together.findings, ...whatif.findings.filter((f) => f.kind === "waits_for_ranks")
    .map((f) => ({...f, text: `of one rank alone: ${f.text}`}))];
}

// As a sentence, where it begins with a word: a name stays as it is.
function sentence(text) {
  const begun = /^[a-z]+ /.test(text) ? text[0].toUpperCase() + text.slice(1) : text;
  return /[.!?:]$/.test(begun) ? begun : `${begun}.`;
}

function findings() {
  const said = new Set(), fresh = allFindings().filter((f) => !said.has(f.text) && said.add(f.text));
  const notes = about.not_whole ? [h("div", {class: "note"}, h("b", null, "This page is not whole: "), `it was interrupted; ${sentence(about.not_whole)}`)] : [];
  notes.push(...fresh.map((f) => h("div", {class: "note"}, h("b", null, sentence(f.text)),
    f.where && !f.text.includes(f.where) ? h("div", null, f.where) : null,
    h("div", {class: "fix"}, f.fix))));
  for (const text of new Set(whatif.warnings)) if (!said.has(text)) notes.push(h("div", {class: "note"}, sentence(text)));
  const checks = whatif.replay.checks;
  if (checks && checks.worst_pct > 3) {
    notes.push(h("div", {class: "note"}, `The replay of the unchanged trace is off: ${checks.worst}.`));
  }
  const off = together ? together.ranks.check.span_error_pct : 0;
  if (off > 3) notes.push(h("div", {class: "note"}, `The replay of the ranks together is off: the length of one by ${digits(off, 1)} %.`));
  for (const s of answers().all) {
    if (s.error && !said.has(s.error.why) && !said.has(s.error.what) && said.add(s.error.what)) notes.push(h("div", {class: "note"}, h("b", null, named(s.name, s.error.what)),
                                h("div", null, s.error.why || ""), h("div", {class: "fix"}, s.error.fix || "")));
    if (!together && s.left_out && s.left_out.length) {
      notes.push(h("div", {class: "note"}, `${s.name} is predicted without ${s.left_out.join(", ")}: ` +
                                           "nothing to change here."));
    }
  }
  for (const [text, fix] of caveats()) notes.push(h("div", {class: "note"}, h("b", null, text), fix ? h("div", {class: "fix"}, fix) : null));
  section("findings", "Read this first", ...(notes.length ? notes :
    [h("p", {class: "quiet"}, "No findings: nothing in this recording speaks against its numbers.")]));
}

// The recorded steps beside their mean: how far they differ, and which were left out.
function stepsText() {
  const {median_ms: median, quartiles_ms: [low, high], per_step: all} = whatif.replay, parts = [];
  const ms = (v) => time(v * 1e6), lengths = all.map((s) => s.measured_ns);
  if (lengths.length > 1 && high - low > 0.01 * median) {
    parts.push(`steps differ: median ${ms(median)}, middle half ${ms(low)} to ${ms(high)}, all ${time(Math.min(...lengths))} to ${time(Math.max(...lengths))}`);
  }
  for (const s of whatif.trace.steps_left_out) parts.push(`${s.step} does not count: ${s.why}`);
  const text = parts.join("; ");
  return text ? `${text[0].toUpperCase()}${text.slice(1)}.` : "";
}

// "8.97 steps/s, 287 samples/s"
function rates(s) {
  return [s.steps_per_s ? `${short(s.steps_per_s)} steps/s` : "", s.samples_per_s ? `${short(s.samples_per_s)} samples/s` : ""].filter((t) => t).join(", ");
}

// How the gains of the parts of the main scenario overlap.
function overlapText(all, then) {
  const parts = then.opts.map((o) => all.find((s) => s.opts.length === 1 && s.opts[0] === o && s.step_ms !== null));
  if (parts.length < 2 || parts.some((s) => !s)) return "";
  const before = all[0].step_ns, sum = parts.reduce((ns, s) => ns + before - s.step_ns, 0), both = before - then.step_ns;
  const words = (ns) => `${ns < 0 ? "cost" : "save"} ${time(Math.abs(ns))}`;
  return `One by one they ${words(sum)} in sum; together they ${words(both)}.`;
}

// The step as it is: without what happened once, where that was taken out.
function baselineCard(before) {
  if (together) return card("step as it is", time(before.step_ns), togetherWords());
  const steps = plural(whatif.steps, "step"), replay = whatif.replay, recorded = time(replay.measured_ms * 1e6);
  if (before.confidence === "given") return card("step without the profiler", time(before.step_ns), `as given; recorded: ${recorded}`);
  if (replay.recording_cost) return card("step when nobody records", time(before.step_ns), `without what recording cost; recorded: ${recorded}`);
  const steady = before.step_ms < replay.simulated_ms * 0.999, rate = rates(before);
  return steady ? card("step without stalls", time(before.step_ns), `${steps}; recorded with them: ${recorded}`) :
    card("step as recorded", time(before.step_ns), `${whatif.steps === 1 ? steps : `mean of ${steps}`}; ${replay.error_pct === null ? "no replay can be checked" : `the replay is ${signed(replay.error_pct)} off`}${rate ? `; ${rate}` : ""}`);
}

// The prediction and its speed-up.
/** @param {Scenario} s */
function answerCards(s) {
  const step = card(`step with ${s.name}`, `${s.bound ? "\u2265 " : ""}${time(s.step_ns)}`,
    [s.interval_ms ? `${range(s.interval_ms, (ms) => time(ms * 1e6))} (90\u00a0%)` : s.bound ? "a limit, not a prediction" : "no interval", rates(s)]
      .filter((t) => t).join("; "));
  // In colour only where the interval leaves no doubt of the direction.
  const [least, best] = s.speedup_interval || [s.speedup, s.speedup];
  const sure = s.bound ? "" : least > 1 ? "good" : best < 1 ? "bad" : "";
  const more = [range(s.speedup_interval, times), s.confidence ? `confidence ${s.confidence}` : ""].filter((text) => text);
  return [step, card("speed-up", `${s.bound ? "\u2264 " : ""}${times(s.speedup)}`, more.join(", "), sure)];
}

function boundCard(s) {
  const title = s === baseline ? "bound by" : "then bound by";
  const [resource, share] = kResources.map((r) => [r, s.bound_by[r]]).sort((a, b) => b[1] - a[1])[0];
  return card(title, kResourceNames[resource], `${percent(share, 0)} of the critical path`);
}

function memoryCard(then) {
  const about_ = (s) => `${s.peak_memory_estimate ? "~" : ""}${size(s.peak_memory_bytes)}`;
  return card(together ? `peak GPU memory of rank ${about.rank}` : "peak GPU memory", about_(then), then !== baseline ?
    `${about_(baseline)} before` : whatif.memory.source === "shapes" ? "an estimate from shapes" : "from recorded allocations");
}

// What stands for one rank only, and what that one does not tell.
function aboutOneRank() {
  const silent = whatif.main > 0 && main.step_ms === null || together.main > 0 && !whatif.main;
  return h("p", {class: "quiet"}, `Step times here, in the list of scenarios and in the advice are of ${togetherWords()}. ` +
    `All else, but the part about ranks, is rank ${about.rank} played alone` +
    (silent ? ": there, what you asked about is not predicted." : "."));
}

// What is drawn beside plain bars.
/** @param {Scenario[]} all @param {number | null} measured */
function barsKey(all, measured) {
  const known = [all.some((s) => s.interval_ms) ? "lines across the ends of bars are 90 % intervals" : "",
    all.some((s) => s.bound) ? "hatched bars are limits" : "", measured ? "the dashed line was measured" : ""];
  const text = known.filter((part) => part).join("; ");
  return text ? `${text[0].toUpperCase()}${text.slice(1)}.` : "";
}

function headline() {
  const {all, main: asked} = answers(), before = all[0], then = all[asked];
  if (before.step_ms === null || asked > 0 && then.step_ms === null) {
    const s = before.step_ms === null ? before : then, error = s.error || then.error;
    section("refused", asked > 0 ? "What it brings: not predicted" : "The step: not known",
      h("p", null, h("b", null, error ? sentence(error.what) : "This recording holds no step.")),
      error && error.why && !whatif.findings.some((f) => f.text === error.why) ? h("p", null, sentence(error.why)) : null,
      error && error.fix ? h("p", {class: "quiet"}, error.fix) : null);
    if (before.step_ms === null) return;
  }
  const cards = [baselineCard(before)], answered = asked > 0 && then.step_ms !== null;
  if (answered) cards.push(...answerCards(then));
  if (answered && whatif.measured && whatif.measured.scenario === then.name) {
    cards.push(card("measured", time(whatif.measured.step_ms * 1e6), `the prediction is ${signed(whatif.measured.error_pct)} off, ` +
      `${whatif.measured.inside_interval ? "inside" : "outside"} its interval`));
  }
  if (together) cards.push(card(answered ? "then bound by" : "bound by", together.scenarios[answered ? asked : 0].step_bound_by, "all ranks together"));
  else cards.push(boundCard(changed && known ? main : baseline));
  if (baseline.peak_memory_bytes) cards.push(memoryCard(changed && known && main.peak_memory_bytes ? main : baseline));
  const why = !together && answered && then.explanation ? whySentences(then.explanation) : null;
  section("answer", answered ? "What it brings" : "The step", h("div", {class: "cards"}, ...cards),
          ...[together ? "" : stepsText(), answered ? overlapText(all, then) : ""].filter((t) => t).map((t) => h("p", {class: "quiet"}, t)),
          together ? aboutOneRank() : null, why);
}

function comparison() {
  const {all, main: asked} = answers();
  if (all.length < 2 || all[0].step_ms === null) return;
  const measured = whatif.measured ? whatif.measured.step_ms : null;
  /** @type {[string, (s: Scenario) => string][]} */
  const columns = [["scenario", (s) => s.name], ["step", (s) => time(s.step_ns)],
    ["90 % interval", (s) => range(s.interval_ms, (ms) => time(ms * 1e6)) || "-"],
    ["speed-up", (s) => s.speedup === null ? "-" : `${s.bound ? "\u2264 " : ""}${times(s.speedup)}`],
    ["interval", (s) => range(s.speedup_interval, times) || "-"]];
  if (!together) columns.push(["peak memory", (s) => s.peak_memory_bytes ?
      `${s.peak_memory_estimate ? "~" : ""}${size(s.peak_memory_bytes)}` : "-"], ["confidence", (s) => s.confidence || "-"]);
  const table = wide(h("table", null,
    h("thead", null, h("tr", null, ...columns.map(([t]) => h("th", {scope: "col"}, t)))),
    h("tbody", null, ...all.map((s) =>
      h("tr", null, ...columns.map(([, of]) => h("td", null, of(s))))))));
  section("scenarios", "Step time of each scenario", scenarioBars(all, asked, measured),
    h("p", {class: "quiet"}, (together ? `Of ${togetherWords()}. ` : "") + barsKey(all, measured)),
    h("details", null, h("summary", null, "as a table"), table));
}

// Goes to the timeline and leaves there only what an optimization changed for one reason.
function toCause(cause) {
  const view = window.daydreamTimeline;
  const place = view ? view.timeline.causes.findIndex((c) => c.slices > 0 && c.what === cause.what && c.opt === cause.opt) : -1;
  if (place < 0) return;
  element("timelines").scrollIntoView();
  view.showCause(place + 1);
  view.canvas.focus();
}

function causes() {
  const with_causes = scenarios.filter((s) => s.causes && s.causes.length);
  if (!with_causes.length) return;
  const place = h("div");
  const timeline = block("timeline"), linked = new Set((timeline ? timeline.causes : []).filter((c) => c.slices > 0).map((c) => `${c.opt} ${c.what}`));
  const link = (s) => (c) => s === main && linked.has(`${c.opt} ${c.what}`) ? () => toCause(c) : null;
  const unit = unitFor(baseline.step_ns), show_ = (v) => change(v, unit);
  const columns = [{title: "cause", of: (c) => c.what, text: true}, {title: "of", of: (c) => c.opt, text: true},
    {title: "step", of: (c) => c.delta_ns, show: show_}, {title: "GPU work", of: (c) => c.gpu_ns, show: show_},
    {title: "host work", of: (c) => c.host_ns, show: show_}];
  const show = (s) => place.replaceChildren(waterfall(s, baseline, link(s)),
    h("details", null, h("summary", null, "as a table"), sortable(columns, s.causes, "cause")));
  const parts = [];
  if (with_causes.length > 1) {
    const select = h("select", {"aria-label": "scenario", onchange: (e) => show(with_causes[e.target.value])},
      ...with_causes.map((s, i) => h("option", {value: i, selected: s === main}, s.name)));
    parts.push(h("div", {class: "tools"}, select));
  }
  show(with_causes.includes(main) ? main : with_causes[0]);
  section("causes", ofRank("Where the time goes"), ...parts, place);
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
  if (best) bars.push({...best.prediction, name: "best set"});
  section("advice", "What to try", scenarioBars(bars, best ? bars.length - 1 : 1, null),
    h("p", {class: "quiet"}, (together ? "Each on all ranks, which are played together. " : "") + "In the order in which to try them: by the low end of what they save, less where the effort is high or the confidence low." +
      (best ? ` Best set: ${best.prediction.name}.` : "")),
    optionTable(advice), ...optionPairs(advice), ...optionCards(advice), ...optionLimits(advice), nextCommand());
}

function critical() {
  if (baseline.step_ms === null) return;
  const shown = (changed ? scenarios : [baseline]).filter((s) => s.step_ms !== null && s.bound_by);
  const columns = [{title: "scenario", of: (s) => s.name, text: true}, {title: "step", of: (s) => s.step_ns, show: (v) => time(v)},
    ...kResources.map((r) => ({title: kResourceNames[r], of: (s) => s.bound_by[r], show: (v) => percent(v)}))];
  section("bound", ofRank("What the step waits for"), ...boundBars(changed ? scenarios : [baseline]),
    h("details", null, h("summary", null, "as a table"), sortable(columns, shown, "scenario")));
}

const kGroups = {class: "kernel class", op: "operator", layer: "layer", kernel: "kernel", phase: "phase", host: "host work"};

function groups() {
  if (!element("summary-class")) return;  // the page is not whole
  const parts = Object.entries(kGroups).filter(([by]) => by !== "host").map(([by, title]) =>
    [title, () => groupTable(block(`summary-${by}`), block(`after-${by}`), title)]);
  parts.push(["host", () => hostTable(block("summary-host"), block("after-host"))]);
  const whole = baseline.step_ms === null ? "The recording, by work" : "One step, by work";
  section("tables", ofRank(whole), tabs("group by", parts));
}

function roofline() {
  if (!element("roofline")) return;  // the page is not whole
  const roof = block("roofline");
  if (!roof || !rooflineChart(roof, 820)) {
    section("roof", ofRank("Achieved against the data sheet"), h("p", {class: "quiet"}, !roof ?
      `Not drawn: ${kNoDevice}` :
      "Not drawn: no operator has recorded shapes, so nobody knows its FLOP and bytes. Record with record_shapes=True."));
    return;
  }
  const place = fitted((width) => rooflineChart(roof, width));
  const peak = (c) => roof.tflops[c.format] || roof.tflops.fp32;
  const columns = [
    {title: "class", of: (c) => c.name, text: true}, {title: "format", of: (c) => c.format, text: true},
    {title: "kernels", of: (c) => c.kernels, show: count},
    {title: "TFLOP/s", of: (c) => c.flops / c.time_ns / 1e3, show: short},
    {title: "of peak", of: (c) => c.flops / c.time_ns / 1e3 / peak(c), show: (v) => percent(v)},
    {title: "GB/s", of: (c) => c.bytes / c.time_ns, show: short},
    {title: "of bandwidth", of: (c) => c.bytes / c.time_ns / roof.memory_gb_per_s, show: (v) => percent(v)},
  ];
  section("roof", ofRank("Achieved against the data sheet"),
    h("p", {class: "quiet"}, `${roof.device}: ${short(roof.memory_gb_per_s)} GB/s. Kernels of operators with ` +
      `recorded shapes, ${percent(roof.known_time_ns / roof.time_ns, 0)} of kernel time; each operand counts ` +
      "once, so more than the bandwidth can come from the cache. The area of a point is its time."),
    place, h("details", null, h("summary", null, "as a table"), sortable(columns, roof.classes, "class")));
}

async function timelines() {
  const timeline = block("timeline");
  if (!timeline || !timeline.slices) return;
  const told = h("p", {id: "slice", class: "quiet", "aria-live": "polite"}, "");
  const links = h("div", {id: "related", class: "tools"});
  const canvas = h("canvas", {id: "lanes", tabindex: 0, role: "application",
    "aria-label": "timelines; arrow keys go from slice to slice"});
  const part = section("timelines", ofRank("Timelines"));
  let rows;
  try {
    rows = await decodeRows(timeline);
  } catch (error) {
    part.append(h("p", {class: "note"}, `This browser cannot unpack the timelines: ${error.message}`));
    return;
  }
  const help = matchMedia("(pointer: coarse)").matches ?
    "Tap a slice to see what it is. Drag to move, two fingers zoom; \"all\" shows everything again." :
    "Click a slice to see what it is. Drag to move; after a click the wheel zooms. Keys: w s zoom, a d move, arrows go from slice " +
      "to slice, Enter zooms to one, 0 shows all. Pale: busy for a part of that time.";
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
    button("all", "show all", () => { view.showCause(0); view.all(); }), search,
    button("next", "next match", () => view.nextMatch())),
    h("div", {class: "scroll"}, canvas), told, links);
  const view = new TimelineView(timeline, rows, canvas, (slice) => {
    told.textContent = slice ? view.describe(slice) : help;
    told.classList.toggle("on-screen", !slice);
    links.replaceChildren(...(slice ? view.related(slice) : []).map(([what, other]) =>
      h("button", {type: "button", onclick: () => { view.select(other, true); canvas.focus(); }}, what)));
    if (slice && slice.row.cause[slice.i] > 0) {
      const {what, opt} = timeline.causes[slice.row.cause[slice.i] - 1];
      links.append(h("a", {href: "#causes"}, `changed by ${opt}: ${what}`));
    }
  });
  told.textContent = help;
  told.classList.add("on-screen");
  part.append(...timelineLegend(view));
  if (timeline.merged_below_ns > 0) {
    part.append(h("p", {class: "quiet"}, "To keep this file small, neighbours that take no more than " +
      `${time(timeline.merged_below_ns)} together are drawn as one.`));
  }
  if (timeline.sides.some((s) => s.rows.some((r) => r.title.includes("loader worker")))) {
    part.append(h("p", {class: "quiet"}, "Loader workers run ahead: of a short recording they make every batch at its beginning."));
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
    {title: "measured", of: (r) => r.measured_ns, show: (v) => time(v)},
    {title: "miss", of: (r) => r.predicted_ns - r.measured_ns, show: (v) => change(v)}];
  section("measured", "Predicted against measured",
    h("p", null, `${m.scenario}: predicted ${time(main.step_ns)}, measured ${time(m.step_ms * 1e6)} in ${m.file}; ` +
      `${signed(m.error_pct)} off, ${m.inside_interval ? "inside" : "outside"} the interval.`),
    sortable(columns, m.misses, "what"));
}

function assumed() {
  const given = scenarios.slice(1).some((s) => s.step_ms !== null) || advice || together ? block("assumptions") || [] : [];
  const cost = whatif.replay && whatif.replay.recording_cost;
  const rows = cost ? [["recording", cost.text]] : [];
  rows.push(...scenarios.filter((s) => s.step_ms !== null).flatMap((s) => [
    ...(s === baseline || together ? [] : [[s.name, `confidence ${s.confidence}: ${s.confidence_why}`]]),
    ...s.notes.map((text) => [s.name, text]), ...s.warnings.map((text) => [s.name, text]), ...s.conditions.map((text) => [s.name, text])]));
  if (!rows.length && !given.length) return;
  // Each text once, at the first scenario that it belongs to, and each name once.
  const said = new Set(), kept = rows.filter(([, text]) => !said.has(text) && said.add(text));
  const columns = [{title: "optimization", of: (a) => a.opt, text: true}, {title: "parameter", of: (a) => a.param || "model", text: true},
    {title: "value", of: (a) => a.value + (a.range ? ` (${a.range})` : ""), text: true},
    {title: "means", of: (a) => a.help, text: true},
    {title: "source", of: (a) => a.given ? "given on the command line" : a.source, text: true}];
  section("assumptions", "Assumptions", wide(h("table", null, h("tbody", null,
    ...kept.map(([name, text], i) => h("tr", null,
      h("td", {class: "text"}, i > 0 && kept[i - 1][0] === name ? "" : name),
      h("td", {class: "text"}, text)))))),
    given.length ? h("h3", null, "Values and where they come from") : null,
    given.length ? sortable(columns, given, "optimization") : null);
}

// Where the numbers of a sweep come from.
function sweepSource() {
  section("provenance", "Where this comes from", factTable([["made by", about.version], ["command", about.command], ["file", about.input]]), copyJson());
}

function factTable(facts) {
  return wide(h("table", null, h("tbody", null, ...facts.map(([name, text]) =>
    h("tr", null, h("th", {class: "text", scope: "row"}, name), h("td", {class: "text"}, text))))));
}

// What the JSON of the page is called: its block, in words.
function blockName(id) {
  const names = {about: "the page", whatif: "all answers", advise: "the advice",
    ranks: "the ranks together", assumptions: "the assumptions", stalls: "the stalls", roofline: "the roofline", memory: "memory over a step",
    timeline: "the timelines, packed", sweep: "the sweep", scale: "the scaling"};
  const [part, by] = id.split("-");
  return names[id] || `${part === "after" ? "work after" : "work before"} by ${kGroups[by] || by}`;
}

// Everything that is on the page is in it as JSON: one list to choose from.
function copyJson() {
  const blocks = [...document.querySelectorAll('script[type="application/json"]')].map((b) => b.id);
  const select = h("select", {id: "json-of", "aria-label": "which JSON"}, ...blocks.map((id) =>
    h("option", {value: id, selected: id === "whatif"}, blockName(id))));
  const button = h("button", {type: "button", onclick: () => copy(element(select.value).textContent, button)}, "copy");
  return h("div", {class: "tools"}, "As JSON: ", select, button);
}

function provenance() {
  const t = whatif.trace;
  const facts = [["made by", about.version], ["command", about.command], ["trace", t.file],
    ["format", t.format + (t.synthetic ? ", synthetic" : "")], ["device", t.device || (takenFor() ? `not recorded, taken for ${takenFor()}` : "not recorded")],
    ["events", `${count(t.events)} of ${count(t.input_events)} read`], ["steps by", t.step_method],
    ["replay", `${time(whatif.replay.simulated_ms * 1e6)} simulated, ${time(whatif.replay.measured_ms * 1e6)} measured`]];
  section("provenance", "Where this comes from", factTable(facts), copyJson());
  element("footer").textContent = "One file, which loads nothing. Times before are replayed from the " +
    "recording, times after are predicted; neither is a measurement.";
}

// On paper: light, with all that can be unfolded.
function printing() {
  const closed = [];
  const redraw = () => { if (window.daydreamTimeline) window.daydreamTimeline.draw(); };
  window.addEventListener("beforeprint", () => {
    document.documentElement.classList.add("paper");
    for (const d of document.querySelectorAll("details")) {
      if (d.open) continue;
      closed.push(d);
      d.open = true;
    }
    for (const tabs of kTabs) tabs.all();
    redraw();
  });
  window.addEventListener("afterprint", () => {
    document.documentElement.classList.remove("paper");
    for (const tabs of kTabs) tabs.one();
    for (const d of closed.splice(0)) d.open = false;
    redraw();
  });
}

async function draw() {
  const parts = whatif ? [findings, headline, comparison, causes, advised, ranks, critical, steps, memoryCurves, groups,
    roofline, timelines, scored, assumed, provenance] : element("sweep") ? [sweeps, sweepSource] : [scaling, sweepSource];
  head();
  const failed = (error) => {  // what is left of the page is worth having
    console.error(error);
    element("main").append(h("p", {class: "note"}, `A part of the page cannot be drawn: ${error.message}`));
  };
  // Nothing waits for the timelines, which are unpacked meanwhile: whoever prints at once has all the rest.
  const late = [];
  for (const part of parts) {
    try {
      late.push(part());
    } catch (error) {
      failed(error);
    }
  }
  await Promise.all(late.map((part) => Promise.resolve(part).catch(failed)));
}
printing();
draw().then(() => { document.body.dataset.drawn = "yes"; });
