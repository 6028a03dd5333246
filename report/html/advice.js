// What `advise` found: every option that is worth a row, and how each would be tried.

// What an option does to the peak of memory: "\u2264 +77.1 MB", "not known", "" for nothing.
function memoryOf(p) {
  const bytes = p.memory_change_bytes;
  if (bytes === null) return "not known";
  if (bytes === 0) return "";
  return `${p.memory.some((m) => m.at_most) ? "\u2264 " : ""}${sizeChange(bytes)}`;
}

// Rows in the order in which to try them; below each the other ways to the same gain, and at the end the best set.
function optionTable(advice) {
  const rows = advice.options.flatMap((o, i) => [{...o, place: i + 1, label: o.prediction.name},
    ...(o.other_ways || []).map((way) => ({...way, place: i + 1, label: `or ${way.prediction.name}`}))]);
  if (advice.best) rows.push({...advice.best, place: rows.length + 1, label: "best set", effort: "", risk: ""});
  const columns = [
    {title: "option", of: (o) => o.label, text: true},
    {title: "try", of: (o) => o.place, show: (v, o) => o.label === "best set" ? "" : count(v)},
    {title: "step", of: (o) => o.prediction.step_ns, show: (v) => time(v)},
    {title: "saves", of: (o) => o.saved_ns, show: (v) => time(v)},
    {title: "speed-up", of: (o) => o.prediction.speedup, show: times},
    {title: "speed-up, 90 %", of: (o) => range(o.prediction.speedup_interval, times) || "-", text: true},
    {title: "effort", of: (o) => o.effort || "-", text: true}, {title: "risk", of: (o) => o.risk || "-", text: true},
    {title: "memory", of: (o) => o.prediction.memory_change_bytes, show: (_, o) => memoryOf(o.prediction)},
    {title: "confidence", of: (o) => o.prediction.confidence, text: true},
  ];
  return sortable(columns, rows, "options");
}

function nextCommand() {
  return about.next ? h("p", {class: "quiet"}, "Causes and timelines of one: ", h("code", null, about.next)) : null;
}

const kPairsShown = 3, kOverlapShown = 0.01;

// Which options take gain from each other, and which help each other, as the text of advise has it.
function optionPairs(advice) {
  const known = (advice.pairs || []).filter((p) => p.step_ns !== null && Math.abs(p.extra_ns) > kOverlapShown * advice.baseline.step_ns);
  known.sort((a, b) => Math.abs(b.extra_ns) - Math.abs(a.extra_ns));
  return known.slice(0, kPairsShown).map((p) => h("p", {class: "quiet"},
    `${p.a} and ${p.b} together save ${time(advice.baseline.step_ns - p.step_ns)}, ${time(Math.abs(p.extra_ns))} ` +
    `${p.extra_ns < 0 ? "less" : "more"} than in sum.`));
}

// One that can be opened for each option: why, how, and the command that checks it afterwards.
function optionCards(advice) {
  const line = (label, text) => text ? h("p", null, h("b", null, `${label}: `), text) : null;
  const card = (title, o) => h("details", null, h("summary", null, title),
    line("why", o.prediction.explanation ? o.prediction.explanation.text : ""),
    ...o.prediction.warnings.filter((text) => text !== o.prediction.confidence_why).map((text) => line("doubt", text)),
    ...o.prediction.conditions.map((text) => line("needs", text)),
    line(`confidence ${o.prediction.confidence}`, o.prediction.confidence_why),
    line("how", o.how), h("p", null, h("b", null, "check: "), h("code", null, o.check)));
  const cards = advice.options.flatMap((o) => [o, ...(o.other_ways || [])])
    .map((o) => card(`${o.prediction.name} saves ${time(o.saved_ns)}`, o));
  if (advice.best && advice.best.check) {
    cards.push(card(`best set: ${advice.best.prediction.name} saves ${time(advice.best.saved_ns)}`, advice.best));
  }
  return cards;
}

// What no change of one kind can go below, and what was left out and why.
function optionLimits(advice) {
  const names = (options) => options.map((o) => o.prediction.name).join(", ");
  const lines = [];
  const limits = advice.limits.filter((o) => o.prediction.step_ns !== null);
  if (limits.length) {
    lines.push("Limits: " + limits.map((o) => `${o.prediction.name} ${time(o.prediction.step_ns)}`).join(", ") + ".");
  }
  if (advice.not_worth.length) lines.push(`Alone each of these saves less than 0.5 %: ${names(advice.not_worth)}.`);
  if (advice.nothing_to_change.length) lines.push(`Nothing to change here: ${names(advice.nothing_to_change)}.`);
  if (advice.not_judged.length) lines.push(`This trace cannot tell: ${names(advice.not_judged)}.`);
  return lines.map((text) => h("p", {class: "quiet"}, text));
}
