// What `sweep` and `scale` found, when their JSON was given to `report`.

function sweepRows() {
  return block("sweep").rows.filter((r) => Number.isFinite(r.step_ns));
}

// Values in the order of numbers where they all begin with one, else as they came.
function orderOf(rows, key) {
  const found = [...new Set(rows.map((r) => r.values[key]))];
  return found.every((v) => Number.isFinite(parseFloat(v))) ? found.sort((a, b) => parseFloat(a) - parseFloat(b)) : found;
}

// A square for each pair of values; of several rows in one square the fastest.
function heatMap(rows, down, across) {
  const ys = orderOf(rows, down), xs = across ? orderOf(rows, across) : [""];
  const at = (y, x) => rows.filter((r) => r.values[down] === y && (!across || r.values[across] === x))
    .reduce((a, b) => !a || b.step_ns < a.step_ns ? b : a, null);
  const all = rows.map((r) => r.step_ns), low = Math.min(...all), high = Math.max(...all), unit = unitFor(high);
  const cell = (row) => {
    if (!row) return h("td", {class: "heat"}, "-");
    const share = high > low ? (high - row.step_ns) / (high - low) : 1;
    return h("td", {class: share > 0.55 ? "heat full" : "heat", style: {"--heat": `${Math.round(100 * share)}%`}, title: row.opt},
      time(row.step_ns, unit), row.step_ns === low ? " *" : "");
  };
  return h("div", {class: "wide"}, h("table", {class: "grid"},
    h("thead", null, h("tr", null, h("th", {scope: "col"}, across ? `${down} \\ ${across}` : down),
      ...xs.map((x) => h("th", {scope: "col"}, across ? x : "step")))),
    h("tbody", null, ...ys.map((y) => h("tr", null, h("th", {scope: "row"}, y), ...xs.map((x) => cell(at(y, x))))))));
}

function sweepHeat(rows) {
  const keys = [...new Set(rows.flatMap((r) => Object.keys(r.values)))].filter((k) => orderOf(rows, k).length > 1);
  if (!keys.length) return;
  const place = h("div");
  let down = keys[0], across = keys[1];
  const show = () => place.replaceChildren(heatMap(rows, down, across === down ? undefined : across));
  const choose = (name, value, set) => h("label", null, `${name} `, h("select", {onchange: (e) => { set(e.target.value); show(); }},
    ...keys.map((k) => h("option", {value: k, selected: k === value}, k))));
  const tools = keys.length > 2 ? h("div", {class: "tools"}, choose("down", down, (k) => { down = k; }),
    choose("across", across, (k) => { across = k; })) : null;
  show();
  section("heat", "Step time by value", tools, place, h("p", {class: "quiet"},
    "Darker is faster; * is the fastest." + (keys.length > 2 ? " A square has the fastest of its rows." : "")));
}

// Rows that no other beats in both step time and memory.
function pareto(rows) {
  const base = block("sweep").baseline_ns;
  const points = rows.filter((r) => Number.isFinite(r.memory_change_bytes)).map((r) => ({name: r.opt, x: r.step_ns, y: r.memory_change_bytes}));
  if (!points.length) {
    section("pareto", "Step time against memory", h("p", {class: "quiet"}, "No row tells what it does to memory."));
    return;
  }
  points.push({name: "baseline", x: base, y: 0});
  for (const p of points) {
    p.best = !points.some((q) => q.x <= p.x && q.y <= p.y && (q.x < p.x || q.y < p.y));
  }
  const xs = points.map((p) => p.x), ys = points.map((p) => p.y), unit = unitFor(Math.max(...xs));
  const room = (values) => (Math.max(...values) - Math.min(...values)) * 0.08 || Math.abs(values[0]) * 0.1 || 1;
  const draw = (width) => {
    const axes = plot("step time against memory", {low: Math.min(...xs) - room(xs), high: Math.max(...xs) + room(xs),
      name: "step time", show: (v) => time(v, unit)}, {low: Math.min(...ys) - room(ys), high: Math.max(...ys) + room(ys),
      name: "change of peak memory", show: sizeChange}, width);
    const front = points.filter((p) => p.best).sort((a, b) => a.x - b.x);
    axes.line("then", front.flatMap((p, i) => i ? [[p.x, front[i - 1].y], [p.x, p.y]] : [[p.x, p.y]]));
    for (const p of points) {
      axes.chart.append(svg("circle", {class: p.best ? "point" : "point other", cx: axes.px(p.x), cy: axes.py(p.y), r: p.best ? 5 : 4},
        svg("title", {}, `${p.name}: ${time(p.x, unit)}, ${sizeChange(p.y)}`)));
    }
    return axes.chart;
  };
  const columns = [{title: "row", of: (p) => p.name, text: true}, {title: "step", of: (p) => p.x, show: (v) => time(v, unit)},
    {title: "memory", of: (p) => p.y, show: sizeChange}];
  section("pareto", "Step time against memory", fitted(draw),
    h("p", {class: "quiet"}, "No other row is at least as fast with as little memory as those on the line."),
    sortable(columns, points.filter((p) => p.best).sort((a, b) => a.x - b.x), "row on the line"));
}

function sweepTable(rows) {
  const keys = [...new Set(rows.flatMap((r) => Object.keys(r.values)))], all = block("sweep").rows, unit = unitFor(Math.max(...rows.map((r) => r.step_ns)));
  const columns = [{title: "options", of: (r) => r.opt, text: true}, ...keys.map((k) => ({title: k, of: (r) => r.values[k] ?? "", text: true})),
    {title: "step", of: (r) => r.step_ns, show: (v) => time(v, unit)},
    {title: "90 % from", of: (r) => r.low_ns ?? null, show: (v) => time(v, unit)}, {title: "to", of: (r) => r.high_ns ?? null, show: (v) => time(v, unit)},
    {title: "speed-up", of: (r) => r.speedup, show: (v, r) => `${r.bound ? "\u2264 " : ""}${times(v)}`},
    {title: "confidence", of: (r) => r.confidence || "-", text: true}];
  const lost = all.length - rows.length;
  section("rows", "All rows", lost ? h("p", null, `${plural(lost, "row")} could not be predicted.`) : null, sortable(columns, rows, "options"));
}

function sweeps() {
  const sweep = block("sweep"), rows = sweepRows();
  const best = rows.reduce((a, b) => !a || b.step_ns < a.step_ns ? b : a, null);
  section("answer", "What the sweep found", h("div", {class: "cards"}, card("step as recorded", time(sweep.baseline_ns), sweep.trace),
    ...(best ? [card("fastest row", time(best.step_ns), best.opt), card("speed-up", times(best.speedup),
      best.low_ns ? `${time(best.low_ns)} \u2013 ${time(best.high_ns)} (90 %)` : "no interval")] : [])),
    best ? null : h("p", {class: "note"}, "No row could be predicted."));
  if (!best) return;
  sweepHeat(rows);
  pareto(rows);
  sweepTable(rows);
}

function scaling() {
  const scale = block("scale"), points = scale.points.filter((p) => Number.isFinite(p.step_ms));
  const unit = unitFor(Math.max(...points.map((p) => p.step_ms * 1e6), 1));
  section("answer", "What more GPUs bring", h("p", null, `${scale.strategy} over ${scale.fabric}, ` +
    (scale.fixed_global_batch ? "all GPUs together with the recorded batch." : "each GPU with the recorded batch.")));
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
    h("p", {class: "quiet"}, "Upright lines are 90 % intervals. Efficiency: throughput against as many GPUs that wait for nobody."));
  const columns = [{title: "GPUs", of: (p) => p.ranks, show: count}, {title: "step", of: (p) => p.step_ms * 1e6, show: (v) => time(v, unit)},
    {title: "efficiency", of: (p) => p.efficiency, show: (v) => percent(v)},
    {title: "exposed communication", of: (p) => p.exposed_comm_ms * 1e6, show: (v) => time(v)}, {title: "bound by", of: (p) => p.bound_by, text: true}];
  const lost = scale.points.length - points.length;
  section("points", "As a table", sortable(columns, points, "GPUs"), lost ? h("p", {class: "quiet"},
    `Not predicted: ${scale.points.filter((p) => p.step_ms === null).map((p) => `${p.ranks} GPUs (${p.error})`).join(", ")}.`) : null);
}
