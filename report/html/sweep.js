// What `sweep` and `scale` found, when their JSON was given to `report`.

function sweepRows() {
  return block("sweep").rows.filter((r) => Number.isFinite(r.step_ns));
}

// Not by Math.min(...all): a sweep can have more rows than a call takes arguments.
function extremes(values) {
  return values.reduce(([low, high], v) => [Math.min(low, v), Math.max(high, v)], [Infinity, -Infinity]);
}

// The step for as many examples as the recorded one handles: what rows are compared by.
function asRecorded(row) {
  return row.throughput_gain > 0 ? row.step_ns * row.speedup / row.throughput_gain : row.step_ns;
}

const kForAsMany = "for as many examples as in the recorded step";

function anyOtherBatch(rows) {
  return rows.some((r) => r.throughput_gain > 0 && Math.abs(r.throughput_gain / r.speedup - 1) > 1e-4);
}

// Values in the order of numbers where they all begin with one, else as they came.
function orderOf(rows, key) {
  const found = [...new Set(rows.map((r) => r.values[key]))].filter((v) => v !== undefined);
  return found.every((v) => Number.isFinite(parseFloat(v))) ? found.sort((a, b) => parseFloat(a) - parseFloat(b)) : found;
}

const kMostLost = 20;  // rows without a prediction that are told one by one
const kMostSquares = 40;  // down and across; chosen: what can still be read

// A square for each pair of values; of several rows in one square the fastest.
function heatMap(all, down, across) {
  const rows = all.filter((r) => r.values[down] !== undefined && (!across || r.values[across] !== undefined));
  const ys = orderOf(rows, down), xs = across ? orderOf(rows, across) : [""];
  const key = (y, x) => JSON.stringify([y, x]), best = new Map();
  for (const r of rows) {
    const at = key(r.values[down], across ? r.values[across] : "");
    if (!best.has(at) || asRecorded(r) < asRecorded(best.get(at))) best.set(at, r);
  }
  const [low, high] = extremes([...best.values()].map(asRecorded)), unit = unitFor(high);
  const cell = (row) => {
    if (!row) return h("td", {class: "heat"}, "-");
    const step = asRecorded(row), share = high > low ? (high - step) / (high - low) : 1;
    return h("td", {class: "heat", style: heat(share), title: row.opt},
      time(step, unit), step === low ? " *" : "");
  };
  const shown = xs.slice(0, kMostSquares);
  const cut = ys.length > kMostSquares || xs.length > kMostSquares ? h("p", {class: "note"},
    `Drawn are the first ${kMostSquares} of ${[ys, xs].map((v) => v.length).filter((n) => n > kMostSquares).join(" and of ")} values; ` +
    "the table below has every row.") : null;
  return h("div", null, cut, wide(h("table", {class: "grid"},
    h("thead", null, h("tr", null, h("th", {scope: "col"}, across ? `${down} \\ ${across}` : down),
      ...shown.map((x) => h("th", {scope: "col"}, across ? x : "step")))),
    h("tbody", null, ...ys.slice(0, kMostSquares).map((y) => h("tr", null, h("th", {scope: "row"}, y),
      ...shown.map((x) => cell(best.get(key(y, x))))))))));
}

function sweepHeat(rows) {
  const keys = [...new Set(rows.flatMap((r) => Object.keys(r.values)))].filter((k) => orderOf(rows, k).length > 1);
  if (!keys.length) return;
  // First what moves the step most.
  const moves = (k) => {
    const fastest = orderOf(rows, k).map((v) => extremes(rows.filter((r) => r.values[k] === v).map(asRecorded))[0]);
    const [low, high] = extremes(fastest);
    return high - low;
  };
  const effect = new Map(keys.map((k) => [k, moves(k)]));
  keys.sort((a, b) => effect.get(b) - effect.get(a));
  const place = h("div");
  // Values of scenarios that were asked for one by one never meet in a row.
  const meet = (a, b) => a !== b && rows.some((r) => r.values[a] !== undefined && r.values[b] !== undefined);
  let down = keys[0], across = keys.find((k) => meet(k, down)) ?? down;
  const show = () => place.replaceChildren(heatMap(rows, down, meet(across, down) ? across : undefined));
  const choose = (name, value, set) => h("label", null, `${name} `, h("select", {onchange: (e) => { set(e.target.value); show(); }},
    ...keys.map((k) => h("option", {value: k, selected: k === value}, k))));
  const tools = keys.length > 2 ? h("div", {class: "tools"}, choose("down", down, (k) => { down = k; }),
    choose("across", across, (k) => { across = k; })) : null;
  show();
  section("heat", "Step time by value", tools, place, h("p", {class: "quiet"},
    (anyOtherBatch(rows) ? `The step ${kForAsMany}. ` : "") + "The stronger the colour the faster; * is the fastest." + (keys.length > 2 ? " A square has the fastest of its rows." : "")));
}

// Marks the points that no other beats in both: from the left, those that are lower than all before.
function markBest(points) {
  const order = [...points].sort((a, b) => a.x - b.x || a.y - b.y);
  let lowest = Infinity, last = null;
  for (const p of order) {
    p.best = p.y < lowest || last !== null && p.x === last.x && p.y === last.y;
    if (p.best) [lowest, last] = [p.y, p];
  }
}

const kMostPointsDrawn = 2000;  // chosen: more lie on each other

// Rows that no other beats in both step time and memory. Limits are no choice.
function pareto(rows) {
  const base = block("sweep").baseline_ns;
  const points = rows.filter((r) => !r.bound && Number.isFinite(r.memory_change_bytes))
    .map((r) => ({name: r.opt, x: asRecorded(r), y: r.memory_change_bytes}));
  if (!points.length) {
    section("pareto", "Step time against memory", h("p", {class: "quiet"}, "No row tells what it does to memory."));
    return;
  }
  if (points.every((p) => p.y === 0)) {
    section("pareto", "Step time against memory", h("p", {class: "quiet"}, "No row changes what memory takes: there is nothing to trade."));
    return;
  }
  points.push({name: "baseline", x: base, y: 0});
  markBest(points);
  const spread = extremes(points.map((p) => p.x)), high = extremes(points.map((p) => p.y)), unit = unitFor(spread[1]);
  const wider = ([low, most]) => {
    const room = (most - low) * 0.08 || Math.abs(low) * 0.1 || 1;
    return {low: low - room, high: most + room};
  };
  const drawn = points.filter((p) => p.best).concat(points.filter((p) => !p.best).slice(0, kMostPointsDrawn));
  const draw = (width) => {
    const axes = plot("step time against memory", {...wider(spread), name: "step time", show: (v) => time(v, unit)},
      {...wider(high), name: "change of peak memory", show: sizeChange}, width);
    const front = points.filter((p) => p.best).sort((a, b) => a.x - b.x);
    axes.line("then", front.flatMap((p, i) => i ? [[p.x, front[i - 1].y], [p.x, p.y]] : [[p.x, p.y]]));
    for (const p of drawn) {
      axes.chart.append(svg("circle", {class: p.best ? "point" : "point other", cx: axes.px(p.x), cy: axes.py(p.y), r: p.best ? 5 : 4},
        svg("title", {}, `${p.name}: ${time(p.x, unit)}, ${sizeChange(p.y)}`)));
    }
    return axes.chart;
  };
  const columns = [{title: "row", of: (p) => p.name, text: true}, {title: "step", of: (p) => p.x, show: (v) => time(v, unit)},
    {title: "memory", of: (p) => p.y, show: sizeChange}];
  section("pareto", "Step time against memory", fitted(draw),
    h("p", {class: "quiet"}, (anyOtherBatch(rows) ? `The step ${kForAsMany}. ` : "") + (new Set(points.filter((p) => p.best).map((p) => p.x)).size > 1 ?
      "No other row is at least as fast with as little memory as those on the line." :
      "In colour what is fastest and takes the least memory: there is nothing to trade.") +
      (drawn.length < points.length ? ` ${count(points.length - drawn.length)} of the others are not drawn.` : "")),
    sortable(columns, points.filter((p) => p.best).sort((a, b) => a.x - b.x), "row on the line"));
}

function sweepTable(rows) {
  const keys = [...new Set(rows.flatMap((r) => Object.keys(r.values)))], all = block("sweep").rows, unit = unitFor(extremes(rows.map((r) => r.step_ns))[1]);
  // What was found stands beside the options, which say the values already.
  const columns = [{title: "options", of: (r) => r.opt, text: true},
    {title: "step", of: (r) => r.step_ns, show: (v) => time(v, unit)},
    {title: "90 % from", of: (r) => r.low_ns ?? null, show: (v) => time(v, unit)}, {title: "to", of: (r) => r.high_ns ?? null, show: (v) => time(v, unit)},
    {title: "speed-up", of: (r) => r.speedup, show: (v, r) => `${r.bound ? "\u2264 " : ""}${times(v)}`},
    ...(anyOtherBatch(rows) ? [{title: "throughput", of: (r) => r.throughput_gain, show: times}] : []),
    {title: "confidence", of: (r) => r.confidence || "-", text: true},
    ...keys.map((k) => ({title: k, of: (r) => r.values[k] ?? "", text: true}))];
  const lost = all.filter((r) => !Number.isFinite(r.step_ns));
  section("rows", "All rows", lost.length ? h("p", null, `${plural(lost.length, "row")} could not be predicted:`) : null,
    lost.length ? h("ul", null, ...lost.slice(0, kMostLost).map((r) => h("li", null, `${r.opt}: ${r.what || r.error || "no reason was told"}`)),
      lost.length > kMostLost ? h("li", null, `and ${plural(lost.length - kMostLost, "other")}`) : null) : null,
    sortable(columns, rows, "options"));
}

function partNote({interrupted}, what) {
  return interrupted ? h("p", {class: "note"}, `It was interrupted: some ${what} were not done, and are missing here.`) : null;
}

function sweeps() {
  const sweep = block("sweep"), rows = sweepRows();
  const best = rows.reduce((a, b) => !a || asRecorded(b) < asRecorded(a) ? b : a, null);
  const batch = anyOtherBatch(rows);
  section("answer", "What the sweep found", h("div", {class: "cards"}, card("step as it is", time(sweep.baseline_ns), sweep.trace),
    ...(best ? [card(batch ? "most examples a second" : "fastest row", `${best.bound ? "\u2265 " : ""}${time(best.step_ns)}`, breakable(best.opt, /(?<=[,(])/)),
      ...(batch ? [card("throughput", times(best.throughput_gain), "examples a second against the recorded step")] : []),
      card("speed-up", `${best.bound ? "\u2264 " : ""}${times(best.speedup)}`, best.bound ? "a limit, not a prediction" : best.low_ns ? `step ${time(best.low_ns)} \u2013 ${time(best.high_ns)} (90 %)` : "no interval")] : [])),
    best ? null : h("p", {class: "note"}, "No row could be predicted."), partNote(sweep, "rows"));
  if (!best) return;
  sweepHeat(rows);
  pareto(rows);
  sweepTable(rows);
}

// What the most GPUs that could be predicted bring.
function scaleCards(points, unit) {
  if (!points.length) return null;
  const far = points.reduce((a, b) => b.ranks > a.ranks ? b : a), near = points.reduce((a, b) => b.ranks < a.ranks ? b : a);
  return h("div", {class: "cards"}, card(`step of ${plural(near.ranks, "GPU")}`, time(near.step_ms * 1e6, unit), `bound by ${near.bound_by}`),
    card(`step of ${plural(far.ranks, "GPU")}`, time(far.step_ms * 1e6, unit), range(far.interval_ms, (v) => time(v * 1e6, unit)) + (far.interval_ms ? " (80\u00a0%)" : "")),
    card("efficiency", percent(far.efficiency), `${digits(far.efficiency * far.ranks, 2)} GPUs' worth of ${count(far.ranks)}`),
    card("then bound by", far.bound_by, `${time(far.exposed_comm_ms * 1e6)} of communication in the open`));
}

function scaling() {
  const scale = block("scale"), points = scale.points.filter((p) => Number.isFinite(p.step_ms) && Number.isFinite(p.ranks) && p.ranks > 0);
  const unit = unitFor(Math.max(...points.map((p) => p.step_ms * 1e6), 1));
  section("answer", "What more GPUs bring", scaleCards(points, unit), h("p", null, `${scale.strategy} over ${scale.fabric}, ` +
    (scale.fixed_global_batch ? "all GPUs together with the recorded batch" : "each GPU with the recorded batch") +
    (scale.jitter > 0 ? `; steps of a rank vary by ${percent(scale.jitter)}, and all wait for the slowest.` : ".")),
    points.length ? null : h("p", {class: "note"}, "No number of GPUs could be predicted."), partNote(scale, "points"));
  if (!points.length) return;
  const most = Math.max(...points.map((p) => p.ranks)), least = Math.min(...points.map((p) => p.ranks));
  const x = {low: least, high: most > least ? most : least * 2, log: true, name: "GPUs", show: (v) => digits(v, 0)};
  const curve = (name, y, of, more) => fitted((width) => {
    const axes = plot(name, x, y, width, 260);
    axes.line("then", points.map((p) => [p.ranks, of(p)]));
    more(axes);
    for (const p of points) axes.chart.append(svg("circle", {class: "point", cx: axes.px(p.ranks), cy: axes.py(of(p)), r: 4},
      svg("title", {}, `${p.ranks} GPUs: ${y.show(of(p))}`)));
    return axes.chart;
  });
  const high = Math.max(...points.map((p) => p.interval_ms ? p.interval_ms[1] : p.step_ms)) * 1.08;
  section("curves", "Step time and efficiency",
    curve("step time by GPUs", {low: 0, high, name: "step", show: (v) => time(v * 1e6, unit)}, (p) => p.step_ms, (axes) => {
      for (const p of points) if (p.interval_ms) axes.line("whisk", p.interval_ms.map((v) => [p.ranks, v]));
    }),
    curve("efficiency by GPUs", {low: 0, high: 1.05, name: "efficiency", show: (v) => percent(v, 0)}, (p) => p.efficiency, () => {}),
    h("p", {class: "quiet"}, "Upright lines are 80 % intervals. Efficiency: throughput against as many GPUs that wait for nobody."));
  const columns = [{title: "GPUs", of: (p) => p.ranks, show: count}, {title: "step", of: (p) => p.step_ms * 1e6, show: (v) => time(v, unit)},
    {title: "step, 80 %", of: (p) => range(p.interval_ms, (v) => time(v * 1e6, unit)) || "-", text: true},
    {title: "efficiency", of: (p) => p.efficiency, show: (v) => percent(v)},
    {title: "exposed communication", of: (p) => p.exposed_comm_ms * 1e6, show: (v) => time(v)},
    {title: "were all ranks alike", of: (p) => p.alike_ms === undefined ? null : p.alike_ms * 1e6, show: (v) => v === null ? "-" : time(v, unit)},
    {title: "bound by", of: (p) => p.bound_by, text: true}, {title: "lost most to", of: (p) => p.lost_to || "-", text: true}];
  const why = new Map();  // numbers of GPUs by what keeps them from an answer
  for (const p of scale.points.filter((p) => p.step_ms === null)) {
    const what = `${p.what || "no reason was told"} (${p.error})`;
    why.set(what, [...why.get(what) || [], p.ranks]);
  }
  section("points", "As a table", sortable(columns, points, "GPUs"), ...[...why].map(([what, ranks]) =>
    h("p", {class: "note"}, `Not predicted for ${ranks.join(", ")} GPUs: ${what}.`)));
}
