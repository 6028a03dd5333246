// The steps of the recording, one by one.

const kMostSteps = 240, kMostNamedSteps = 8;

// Each recorded step as a bar, the predicted one beside it. A step that takes more than 1.5 times the median
// is marked, and so is what `stalls` took in it: [ns of each step], or null.
/** @param {string[]} names @param {number[]} measured @param {number[] | null} predicted @param {number[] | null} stalls */
function stepBars(names, measured, predicted, stalls) {
  const per = Math.ceil(measured.length / kMostSteps);
  const joined = (list) => Array.from({length: Math.ceil(list.length / per)}, (_, i) =>
    Math.max(...list.slice(i * per, (i + 1) * per)));
  const now = joined(measured), then = predicted ? joined(predicted) : null;
  const stalled = stalls ? joined(stalls) : null;
  const median = [...measured].sort((a, b) => a - b)[Math.floor(measured.length / 2)];
  const most = Math.max(...now, ...(then || [])), unit = unitFor(most), few = now.length <= kMostNamedSteps;
  const bar = (kind, ns) => h("div", {class: `bar ${kind}`, style: {height: `${100 * ns / most}%`}});
  const steps = now.map((ns, i) => {
    const stall = stalled ? Math.min(stalled[i] || 0, ns) : 0;
    const title = `${names[i * per]}: measured ${time(ns)}` + (stall ? `, ${time(stall)} of it stalls` : "") +
                  (then && i < then.length ? `, predicted ${time(then[i])}` : "");
    const kind = ns > 1.5 * median ? "long" : "plain";
    const bars = [bar(`${kind} ${then ? "now" : "alone"}`, ns)];
    if (stall) bars.push(bar(`stall ${then ? "now" : "alone"}`, stall));
    if (then && i < then.length) bars.push(bar("then", then[i]));
    return h("div", {class: "step", title}, ...bars);
  });
  const long = measured.filter((ns) => ns > 1.5 * median).length;
  const [least, longest] = [Math.min(...measured), Math.max(...measured)].map((ns) => time(ns));
  const text = `${plural(measured.length, "step")}, ${measured.length > 1 && least === longest ? "each " : ""}${least}` +
               (least !== longest ? ` to ${longest}` : "") + (long ? `, ${long === 1 ? "one takes" : `${long} take`} more than 1.5 times the median` : "") +
               (per > 1 ? `; a bar is the longest of ${per}` : "");
  const legend = [h("span", null, h("span", {class: "bar plain swatch"}), "measured")];
  if (long) legend.push(h("span", null, h("span", {class: "bar long swatch"}), "measured, long"));
  if (stalled) legend.push(h("span", null, h("span", {class: "bar stall swatch"}), "of it stalls"));
  if (then) legend.push(h("span", null, h("span", {class: "bar swatch"}), "predicted"));
  // Values on the left; below, where there is room, what each step is called.
  const scale = h("div", {class: "scale"}, ...[1, 0.5, 0].map((share) =>
    h("span", {style: {bottom: `${100 * share}%`}}, share ? time(share * most, unit) : "0")));
  return [h("div", {class: "stepped"}, scale, h("div", {class: "steps", role: "img", "aria-label": text}, ...steps)),
          few ? h("div", {class: "step-names"}, ...names.map((name) => h("span", {title: name}, ...cutInFront(name)))) : null,
          h("div", {class: "legend"}, ...legend, h("span", null, text))];
}

// Names of steps differ at the end: where there is no room, what is before the number gives way.
function cutInFront(name) {
  const end = name.search(/\D?\d+$/), cut = end > 0 ? end : name.length;
  return [h("span", {class: "front"}, name.slice(0, cut)), h("span", null, name.slice(cut))];
}

// Of what kinds, as the table below has them: not all happen once.
function stallKinds(list) {
  const kinds = new Map();
  for (const s of list) kinds.set(s.kind, (kinds.get(s.kind) || 0) + s.time_ns);
  return [...kinds].sort((a, b) => b[1] - a[1]).map(([kind, ns]) => `${kind} ${time(ns)}`).join(", ");
}

function steps() {
  const measured = whatif.replay.per_step.map((s) => s.measured_ns);
  if (!measured.length) return;
  const names = whatif.replay.per_step.map((s, i) => s.step || `step ${i + 1}`);
  const no_step = baseline.step_ms === null;
  const predicted = changed && known ? main.steps_ms.map((ms) => ms * 1e6) : null;
  const found = block("stalls"), list = found ? found.all : [];
  const inStep = measured.map((_, i) => list.filter((s) => s.place === i).reduce((sum, s) => sum + s.time_ns, 0));
  const any = inStep.some((ns) => ns > 0);
  const columns = [{title: "step", of: (r) => names[r.i], text: true}, {title: "measured", of: (r) => r.ns, show: (v) => time(v)},
    {title: "replayed", of: (r) => whatif.replay.per_step[r.i].simulated_ns, show: (v) => time(v)}];
  if (any) columns.push({title: "stalls", of: (r) => inStep[r.i], show: (v) => v ? time(v) : ""});
  if (predicted) columns.push({title: "predicted", of: (r) => predicted[r.i] ?? null, show: (v) => time(v)});
  const parts = [h("details", null, h("summary", null, "as a table"),
    sortable(columns, measured.map((ns, i) => ({i, ns})), "step"))];
  if (list.length) {
    parts.push(h("details", null, h("summary", null, `${plural(list.length, "stall")}: ${stallKinds(list)}`), sortable([
      {title: "what", of: (s) => s.what, text: true}, {title: "kind", of: (s) => s.kind, text: true},
      {title: "step", of: (s) => s.place === null ? null : s.place + 1, show: (v) => v === null ? "not counted" : names[v - 1]},
      {title: "took", of: (s) => s.time_ns, show: (v) => time(v)},
      {title: "left out of predictions", of: (s) => s.taken_ns, show: (v) => time(v)}], list, "stall")));
  }
  section("steps", no_step ? "The recording: no step" : ofRank("The steps"), ...stepBars(names, measured, predicted, any ? inStep : null), ...parts);
}
