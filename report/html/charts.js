// Bars, causes, steps and the roofline.

function track(...children) { return h("div", {class: "track"}, ...children); }

function placed(kind, from, to, title) {
  const style = {left: `${100 * from}%`, width: `${100 * Math.max(0, to - from)}%`};
  return h("div", {class: `bar ${kind}`, style, title});
}

// One bar a scenario, with the 90 % interval as a whisker; `measured` draws a line.
/** @param {Scenario[]} scenarios @param {number} main @param {number | null} measured */
function scenarioBars(scenarios, main, measured) {
  const ok = scenarios.filter((s) => s.step_ms !== null);
  const most = Math.max(measured || 0,
                        ...ok.map((s) => Math.max(s.step_ms, s.interval_ms ? s.interval_ms[1] : 0)));
  const unit = unitFor(most * 1e6);
  const rows = scenarios.flatMap((s, i) => {
    const label = h("div", {class: i === main ? "label main" : "label"}, s.name);
    if (s.step_ms === null) return [label, h("div", {class: "told quiet"}, s.error.what)];
    const kind = s.bound ? "limit" : i === 0 ? "plain" : "";
    const inside = [placed(kind, 0, s.step_ms / most)];
    if (s.interval_ms) {
      const [low, high] = s.interval_ms;
      inside.push(h("div", {class: "whisker", style: {
        left: `${100 * low / most}%`, width: `${100 * (high - low) / most}%`}}));
    }
    if (measured && i === main) {
      inside.push(h("div", {class: "rule", style: {left: `${100 * measured / most}%`},
                            title: `measured ${time(measured * 1e6)}`}));
    }
    const speedup = i === 0 ? "" : `${s.bound ? "\u2264 " : ""}${times(s.speedup)}`;
    return [label, track(...inside), h("div", {class: "value"},
      `${s.bound ? "\u2265 " : ""}${time(s.step_ms * 1e6, unit)}`, h("span", {class: "factor"}, speedup))];
  });
  return h("div", {class: "bars", role: "img", "aria-label": "step time of each scenario"}, ...rows);
}

const kSeenOnAWholeAxis = 0.01;  // chosen: less than a hundredth of a step is no reason to draw it large

// From the step as it is to the step after, cause by cause. `link(cause)`: what a click on it does, or null.
/** @param {Scenario} scenario @param {Scenario} baseline @param {(cause: Cause) => (() => void) | null} link */
function waterfall(scenario, baseline, link) {
  const from = baseline.step_ns;
  let at = from;
  const steps = scenario.causes.map((c) => { at += c.delta_ns; return at; });
  const high = Math.max(from, ...steps);
  let low = Math.min(0, ...steps);
  // Small changes are seen on an axis that begins beneath them, with the bars torn there; tiny ones stay tiny.
  const least = Math.min(from, at, ...steps), moved = high - least;
  if (moved < 0.2 * high && moved > kSeenOnAWholeAxis * high) low = Math.max(0, least - moved);
  const torn = low > 0 ? " torn" : "";
  const unit = unitFor(from);
  const place = (ns) => (ns - low) / (high - low || 1);
  const row = (label, bar, value) =>
    [h("div", {class: "label"}, ...label), track(bar), h("div", {class: "value"}, value)];
  const rows = row(["baseline"], placed(`plain${torn}`, 0, place(from)), time(from, unit));
  at = from;
  for (const c of scenario.causes) {
    const next = at + c.delta_ns;
    const kind = c.delta_ns <= 0 ? "less" : "more";
    const act = link(c);
    rows.push(...row([act ? h("button", {type: "button", class: "link", title: "show it in the timeline", onclick: act}, c.what) : c.what,
                      " ", h("span", {class: "quiet"}, c.opt)],
                     placed(kind, place(Math.min(at, next)), place(Math.max(at, next))),
                     change(c.delta_ns, unit)));
    at = next;
  }
  rows.push(...row([h("b", null, scenario.name)], placed(torn, 0, place(at)), time(at, unit)));
  const bars = h("div", {class: "bars", role: "group", "aria-label": `causes of ${scenario.name}`}, ...rows);
  const axis = low > 0 ? `; the axis begins at ${time(low, unit)}, not at 0` : "";
  return h("div", null, bars, h("p", {class: "quiet"},
    `From the baseline to the scenario; the changes sum to the difference${axis}.`));
}

const kResources = ["gpu", "cpu", "comm", "data"];
const kResourceNames = {gpu: "GPU", cpu: "CPU and launching", comm: "communication", data: "data"};

// What the steps wait for: the critical path by resource, one bar a scenario.
/** @param {Scenario[]} scenarios */
function boundBars(scenarios) {
  const ok = scenarios.filter((s) => s.step_ms !== null && s.bound_by);
  const most = Math.max(...ok.map((s) => s.step_ms));
  const rows = ok.flatMap((s) => {
    let at = 0;
    const bars = kResources.map((r) => {
      const from = at;
      at += s.bound_by[r] * s.step_ms / most;
      return placed(r, from, at, `${kResourceNames[r]} ${percent(s.bound_by[r])}`);
    });
    const [first, share] = kResources.map((r) => [r, s.bound_by[r]]).sort((a, b) => b[1] - a[1])[0];
    return [h("div", {class: "label"}, s.name), track(...bars),
            h("div", {class: "value"}, `${kResourceNames[first]} ${percent(share, 0)}`)];
  });
  const legend = kResources.map((r) =>
    h("span", null, h("span", {class: `bar swatch ${r}`}), kResourceNames[r]));
  return [h("div", {class: "bars", role: "img", "aria-label": "critical path by resource"}, ...rows),
          h("div", {class: "legend"}, ...legend)];
}

// As wide as it is drawn in a chart.
function textWidth(text) {
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = "12px system-ui, sans-serif";
  return pen.measureText(text).width;
}

// Where the label of a point has room: beside it, or higher and lower by lines. (x, y) is the left end of its
// lowest line, h what it takes upwards.
/**
 * @param {string} label @param {number} x @param {number} y @param {number} r
 * @param {LabelBox[]} taken @param {(box: LabelBox) => boolean} inside
 * @returns {LabelBox}
 */
function freePlace(label, x, y, r, taken, inside) {
  const w = textWidth(label), high = 13;
  const clash = (a, b) => a.x < b.x + b.w && b.x < a.x + a.w && a.y - a.h < b.y && b.y - b.h < a.y;
  let first = null;
  for (let line = 0; line < 16; ++line) {
    const down = Math.ceil(line / 2) * (line % 2 ? -1 : 1) * high;
    for (const at of [x + r + 3, x - r - 3 - w]) {
      const box = {x: at, y: y + 4 + down, w, h: high};
      first ||= box;
      if (inside(box) && !taken.some((b) => clash(box, b))) return box;
    }
  }
  return first;
}

// Arithmetic against memory traffic on two logarithmic axes, below the roof of the data sheet.
const kRoofStep = 4, kNear = 14;  // pixels; a label that is further off has a line to its point
const kRoofLine = 14;  // pixels from one label of a roof to the next

// "100 G" for 11; above T no larger unit, since data sheets have none.
function rateName(e) {
  const unit = Math.max(0, Math.min(4, Math.floor(e / 3)));
  return `${10 ** (e - 3 * unit)} ${" kMGT"[unit]}`.trimEnd();
}

// Heights of labels, from the top down, each as near to its own as the one above leaves room.
function spread(heights) {
  let last = -Infinity;
  return heights.map((y) => last = Math.max(y, last + kRoofLine));
}

/** @param {any} roof @param {number} width */
function rooflineChart(roof, width) {
  const height = 380, top = 20, bottom = 42;
  const points = roof.classes.filter((c) => c.flops > 0 && c.bytes > 0 && c.time_ns > 0).map((c) => ({
    ...c, x: c.flops / c.bytes, y: c.flops / c.time_ns * 1e9,
    label: c.format ? `${c.name} ${c.format}` : c.name}));
  if (points.length === 0) return null;
  const bandwidth = roof.memory_gb_per_s * 1e9;
  /** @type {[string, number][]} */
  const roofs = Object.entries(roof.tflops).map(([name, tflops]) => [name, tflops * 1e12]);
  const peak = Math.max(...roofs.map((r) => r[1]));
  // Formats with one rate share a label, which stands to the right of its roof.
  const rates = [...new Set(roofs.map((r) => r[1]))].sort((a, b) => b - a).map((rate) => ({rate, label:
    `${roofs.filter((r) => r[1] === rate).map((r) => r[0]).join(", ")} ${Number((rate / 1e12).toPrecision(3))} T`}));
  const right = 14 + Math.max(...rates.map((r) => textWidth(r.label)));
  const x0 = Math.floor(Math.log10(Math.min(0.1, ...points.map((p) => p.x))));
  const x1 = Math.ceil(Math.log10(Math.max(peak / bandwidth * 4, ...points.map((p) => p.x))));
  const y1 = Math.log10(peak) + 0.3;
  const y0 = Math.floor(Math.log10(Math.min(bandwidth * 10 ** x0, ...points.map((p) => p.y))));
  const left = Math.max(52, 10 + textWidth(rateName(Math.floor(y1))));
  const px = (x) => left + (Math.log10(x) - x0) / (x1 - x0) * (width - left - right);
  const py = (y) => height - bottom - (Math.log10(y) - y0) / (y1 - y0) * (height - top - bottom);
  const chart = svg("svg", {viewBox: `0 0 ${width} ${height}`, width, height, role: "img",
                            "aria-label": "roofline of kernel classes"});
  const text = (x, y, words, more) =>
    chart.append(svg("text", {x, y, class: "faint", ...more}, words));
  for (let e = x0; e <= x1; ++e) {
    const x = px(10 ** e);
    chart.append(svg("line", {class: "axis", x1: x, x2: x, y1: top, y2: height - bottom}));
    text(x, height - bottom + 16, String(10 ** e), {"text-anchor": "middle"});
  }
  for (let e = y0; e <= y1; ++e) {
    const y = py(10 ** e);
    chart.append(svg("line", {class: "axis", x1: left, x2: width - right, y1: y, y2: y}));
    text(left - 6, y + 4, rateName(e), {"text-anchor": "end"});
  }
  text((left + width - right) / 2, height - 6, "FLOP per byte", {"text-anchor": "middle"});
  text(4, top - 4, "FLOP/s", {});
  for (const [name, rate] of roofs) {
    const knee = Math.max(rate / bandwidth, 10 ** x0);
    chart.append(svg("polyline", {class: "roof", points:
      `${px(10 ** x0)},${py(bandwidth * 10 ** x0)} ${px(knee)},${py(rate)} ${px(10 ** x1)},${py(rate)}`}));
  }
  const heights = spread(rates.map((r) => py(r.rate)));
  rates.forEach(({rate, label}, i) => {
    text(width - right + 10, heights[i] + 4, label, {class: "faint of-roof"});
    chart.append(svg("line", {class: "leader", x1: width - right, x2: width - right + 8, y1: py(rate), y2: heights[i]}));
  });
  const longest = Math.max(...points.map((p) => p.time_ns));
  points.sort((a, b) => b.time_ns - a.time_ns);
  // Labels keep off each other, off the points and off what stands at the roofs.
  const taken = points.map((p) => {
    const r = 3 + 9 * Math.sqrt(p.time_ns / longest);
    return {x: px(p.x) - r, y: py(p.y) + r, w: 2 * r, h: 2 * r};
  });
  for (const y of heights) taken.push({x: width - right, y: y + 6, w: right, h: kRoofLine});
  // The lines of the roofs, as small boxes along them.
  for (let x = left; x < width - right; x += kRoofStep) {
    const intensity = 10 ** (x0 + (x - left) / (width - left - right) * (x1 - x0));
    for (const [, rate] of roofs) taken.push({x, y: py(Math.min(rate, bandwidth * intensity)) + 3, w: kRoofStep, h: 6});
  }
  const inside = (b) => b.x >= left && b.x + b.w <= width && b.y - b.h >= 4 && b.y <= height - bottom;
  for (const p of points) {
    const x = px(p.x), y = py(p.y), r = 3 + 9 * Math.sqrt(p.time_ns / longest);
    chart.append(svg("circle", {class: "point", cx: x, cy: y, r},
      svg("title", {}, `${p.label}: ${short(p.y / 1e12)} TFLOP/s, ${short(p.bytes / p.time_ns)} GB/s`)));
    const box = freePlace(p.label, x, y, r, taken, inside);
    taken.push(box);
    const dx = Math.max(box.x, Math.min(x, box.x + box.w)) - x, dy = box.y - 5 - y, far = Math.hypot(dx, dy);
    if (far > r + kNear) {  // from the edge of the point
      chart.append(svg("line", {class: "leader", x1: x + dx * r / far, y1: y + dy * r / far, x2: x + dx, y2: y + dy}));
    }
    text(box.x, box.y, p.label, {class: "faint label"});
  }
  return chart;
}
