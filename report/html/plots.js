// Curves and points on two axes: memory over a step, sweeps, scaling.

const kMostTicks = 100;  // chosen: far more than anybody can read

// Round numbers from `low` to `high`, about `most` of them; on a logarithmic axis powers of two or ten. None where
// there is no axis: where it has no length, begins at 0 on a logarithmic one, or is too short to count along.
function ticks(low, high, most, logarithm) {
  if (!(high >= low) || !Number.isFinite(high - low) || logarithm && !(low > 0)) return [];
  const found = [];
  if (logarithm) {
    const base = high / low > 2000 ? 10 : 2, first = Math.ceil(Math.log(low) / Math.log(base) - 1e-9);
    for (let i = 0; i < kMostTicks && base ** (first + i) <= high * 1.001; ++i) found.push(base ** (first + i));
    return found;
  }
  const rough = (high - low) / most || 1, size = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find((s) => s * size >= rough) * size, first = Math.ceil(low / step - 1e-9);
  for (let i = 0; i < kMostTicks && (first + i) * step <= high + step * 1e-6; ++i) found.push((first + i) * step || 0);
  return found;
}

// Axes {low, high, name, show, log}: the chart, where values lie on it, and how to write on it.
/** @param {string} name @param {PlotAxis} x @param {PlotAxis} y @param {number} width */
function plot(name, x, y, width, height = 300) {
  const down = ticks(y.low, y.high, 5, y.log), right = 16, top = 24, bottom = 42;
  const left = 12 + Math.max(54, ...down.map((v) => textWidth(y.show(v))));
  const chart = svg("svg", {viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": name});
  const share = (axis, v) => axis.log ? Math.log(v / axis.low) / Math.log(axis.high / axis.low || 2)
    : (v - axis.low) / (axis.high - axis.low || 1);
  const px = (v) => left + share(x, v) * (width - left - right);
  const py = (v) => height - bottom - share(y, v) * (height - top - bottom);
  const text = (at, down, words, more) => chart.append(svg("text", {x: at, y: down, class: "faint", ...more}, words));
  for (const v of ticks(x.low, x.high, Math.max(3, width / 110), x.log)) {
    chart.append(svg("line", {class: "axis", x1: px(v), x2: px(v), y1: top, y2: height - bottom}));
    // The last one ends where the chart does.
    const words = x.show(v), room = width - px(v), half = 3.5 * words.length;
    text(room < half ? width : px(v), height - bottom + 16, words, {"text-anchor": room < half ? "end" : "middle"});
  }
  for (const v of down) {
    chart.append(svg("line", {class: "axis", x1: left, x2: width - right, y1: py(v), y2: py(v)}));
    text(left - 6, py(v) + 4, y.show(v), {"text-anchor": "end"});
  }
  text((left + width - right) / 2, height - 6, x.name, {"text-anchor": "middle"});
  text(4, 14, y.name, {});
  const line = (kind, points) => chart.append(svg("polyline", {class: `line ${kind}`,
    points: points.map(([a, b]) => `${px(a)},${py(b)}`).join(" ")}));
  return {chart, px, py, text, line};
}

// Drawn as wide as there is room, again when that changes.
function fitted(draw) {
  const made = () => draw(Math.max(300, element("main").clientWidth));
  const place = h("div", null, made());
  window.addEventListener("resize", () => place.replaceChildren(made()));
  return place;
}

function memoryCurves() {
  const m = block("memory"), sides = m ? m.sides.filter((s) => s.points.length > 1) : [];
  const recorded = m && m.recorded;
  if (!sides.length && !recorded) {
    section("memory-curve", ofRank("GPU memory over a step"), h("p", {class: "quiet"},
      `Not drawn: ${whatif.memory ? "only the peak is known" : "nothing is known of it"}. A curve needs shapes of a ` +
      "step that trains (record_shapes=True), or recorded allocations (profile_memory=True)."));
    return;
  }
  const curves = sides.map((s, i) => ({...s, name: `${s.name.replace(/:.*/, "")}, by shapes`, kind: i ? "then" : "now"}));
  if (recorded) curves.unshift({...recorded, name: `recorded allocations${recorded.total ? "" : ", above the lowest"}`, kind: "seen"});
  const longest = Math.max(...curves.map((c) => c.window_ns));
  const highest = Math.max(...curves.flatMap((c) => c.points.map((p) => p[1])));
  const unit = unitFor(longest);
  const draw = (width) => {
    const axes = plot("GPU memory over a step", {low: 0, high: longest, name: "time in the step", show: (v) => time(v, unit)},
      {low: 0, high: highest * 1.05 || 1, name: "bytes", show: size}, width);
    for (const c of curves) {
      const points = c.points.flatMap(([t, b], i) => i ? [[t, c.points[i - 1][1]], [t, b]] : [[t, b]]);
      axes.line(c.kind, points.concat([[c.window_ns, points.at(-1)[1]]]));
    }
    return axes.chart;
  };
  const peak = (c) => c.points.reduce((a, b) => b[1] > a[1] ? b : a);
  const columns = [{title: "curve", of: (c) => c.name, text: true},
    {title: "peak", of: (c) => peak(c)[1], show: size}, {title: "at", of: (c) => peak(c)[0], show: (v) => time(v, unit)},
    {title: "at the start", of: (c) => c.points[0][1], show: size}, {title: "step", of: (c) => c.window_ns, show: (v) => time(v, unit)}];
  section("memory-curve", ofRank("GPU memory over a step"), fitted(draw),
    h("div", {class: "legend"}, ...curves.map((c) => h("span", null, h("span", {class: `key ${c.kind}`}), c.name))),
    h("p", {class: "quiet"}, (sides.length ? "By shapes: parameters, gradients and optimizer state, which are always there, " +
      "and what is kept for backward. Buffers inside of one operator, workspaces and fragmentation are not in it. " : "") +
      (recorded ? `Recorded: what the framework had allocated, by the host's time, which runs ahead of the GPU${recorded.total ? "" :
        "; what it held before the recording is not known"}.` : "")),
    h("details", null, h("summary", null, "as a table"), sortable(columns, curves, "curve")));
}
