// What `advise` found: every option that is worth a row, and how each would be tried.

function optionTable(advice) {
  const columns = [
    {title: "option", of: (o) => o.prediction.name, text: true},
    {title: "step", of: (o) => o.prediction.step_ns, show: (v) => time(v)},
    {title: "saves", of: (o) => o.saved_ns, show: (v) => time(v)},
    {title: "speed-up", of: (o) => o.prediction.speedup, show: times},
    {title: "90 % interval", of: (o) => range(o.prediction.speedup_interval, times) || "-", text: true},
    {title: "effort", of: (o) => o.effort, text: true}, {title: "risk", of: (o) => o.risk, text: true},
    {title: "memory", of: (o) => o.prediction.memory_change_bytes,
     show: (v) => v === null ? "not known" : v === 0 ? "" : `${v < 0 ? "\u2212" : "+"}${size(Math.abs(v))}`},
    {title: "confidence", of: (o) => o.prediction.confidence, text: true},
  ];
  return sortable(columns, advice.options, "options");
}

// One that can be opened for each option: why, how, and the command that checks it afterwards.
function optionCards(advice) {
  const line = (label, text) => text ? h("p", null, h("b", null, `${label}: `), text) : null;
  const card = (title, o) => h("details", null, h("summary", null, title),
    line("why", o.prediction.explanation ? o.prediction.explanation.text : ""),
    ...o.prediction.warnings.map((text) => line("doubt", text)),
    line(`confidence ${o.prediction.confidence}`, o.prediction.confidence_why),
    line("how", o.how), h("p", null, h("b", null, "check: "), h("code", null, o.check)));
  const cards = advice.options.map((o) => card(`${o.prediction.name} saves ${time(o.saved_ns)}`, o));
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
  if (advice.not_worth.length) lines.push(`Saves less than 0.5 %: ${names(advice.not_worth)}.`);
  if (advice.nothing_to_change.length) lines.push(`Nothing to change here: ${names(advice.nothing_to_change)}.`);
  if (advice.not_judged.length) lines.push(`This trace cannot tell: ${names(advice.not_judged)}.`);
  return lines.map((text) => h("p", {class: "quiet"}, text));
}
