// Recorded ranks played together: who waits for whom.

/** @type {Joint | null} */
const together = block("ranks");

// What the cards and bars of the page tell, and which of it answers the question: of all ranks where they are
// there, else of the trace. What only a trace alone tells, as causes and confidence, ranks together do not.
/** @returns {{all: Scenario[], main: number}} */
function answers() {
  if (!together) return {all: scenarios, main: whatif.main || 0};
  const before = together.scenarios[0].step_ms;
  const none = {bound_by: null, confidence: null, explanation: null, peak_memory_bytes: null, step_ns: null, error: undefined};
  return {main: together.main || 0, all: together.scenarios.map((s) => ({...baseline, ...none, ...s,
    steps_per_s: s.step_ms ? 1000 / s.step_ms : null, samples_per_s: null,  // how many all ranks have, no trace tells
    speedup_interval: s.interval_ms ? [before / s.interval_ms[1], before / s.interval_ms[0]] : null}))};
}

function togetherWords() { return `${plural(together.ranks.recorded.length, "rank")} played together`; }

// One bar a rank: its own work, what is in transfers, what it waits for others, and when its GPU has nothing to do.
function rankBars(per_rank) {
  const worked = (r) => r.compute_ms + r.transfer_ms + r.wait_ms;
  const parts = (r) => [["gpu", r.compute_ms], ["comm", r.transfer_ms], ["waits", r.wait_ms],
    ["idle", Math.max(0, r.span_ms - worked(r))]];
  const most = Math.max(...per_rank.map((r) => Math.max(r.own_cycle_ms, r.span_ms, worked(r))));
  const unit = unitFor(most * 1e6);
  return h("div", {class: "bars", role: "img", "aria-label": "what each rank does and waits for"}, ...per_rank.flatMap((r) => {
    let at = 0;
    const bars = parts(r).map(([kind, ms]) => {
      const from = at;
      at += ms;
      return placed(kind, from / most, at / most, time(ms * 1e6, unit));
    });
    bars.push(h("div", {class: "rule", style: {left: `${100 * r.own_cycle_ms / most}%`}, title: `own cycle ${time(r.own_cycle_ms * 1e6, unit)}`}));
    return [h("div", {class: "label"}, `rank ${r.rank}`), track(...bars),
            h("div", {class: "value"}, `waits ${time(r.wait_ms * 1e6, unit)}`)];
  }));
}

const kMostRanksInAGrid = 32;

// A square for each pair: how long the one of the row waits for the one of the column.
function waitGrid(waits, ranks) {
  const columns = [...ranks], ms = (who, whom) => waits.find((w) => w.who === who && w.for === whom)?.ms || 0;
  if (waits.some((w) => w.for === null)) columns.push(null);
  const most = Math.max(...waits.map((w) => w.ms), 1e-9);
  const cell = (who, whom) => {
    const value = ms(who, whom), share = value / most;
    return h("td", {class: "heat", style: heat(share)},
      value > 0 ? short(value) : "");
  };
  return wide(h("table", {class: "grid"},
    h("thead", null, h("tr", null, h("th", {scope: "col"}, "ms"), ...columns.map((c) =>
      h("th", {scope: "col"}, c === null ? "not recorded" : `for ${c}`)))),
    h("tbody", null, ...ranks.map((who) => h("tr", null, h("th", {scope: "row"}, `rank ${who} waits`),
      ...columns.map((whom) => cell(who, whom)))))));
}

function rankTable(per_rank) {
  const unit = unitFor(Math.max(...per_rank.map((r) => r.own_cycle_ms)) * 1e6);
  const ms = (title, key) => ({title, of: (r) => r[key] * 1e6, show: (v) => time(v, unit)});
  return sortable([{title: "rank", of: (r) => r.rank, show: String, text: false}, ms("own step", "own_step_ms"), ms("own cycle", "own_cycle_ms"), ms("waits", "wait_ms"),
    ms("transfers", "transfer_ms"), ms("exposed", "exposed_comm_ms"), ms("compute", "compute_ms"), ms("host", "host_ms"),
    {title: "last", of: (r) => r.last, show: count}], per_rank, "rank");
}

// What the scenario `s` takes, which rank bounds it, and of what the numbers below are.
function ranksText(s) {
  const slowest = s.per_rank.reduce((a, b) => b.own_step_ms > a.own_step_ms ? b : a);
  const late = s.per_rank.reduce((a, b) => b.last > a.last ? b : a);
  const other = s.step_is === "the repeated window" && late.last > 0 && late.rank !== slowest.rank ?
    ` Here the others waited most often for rank ${late.rank}, and the repeated step is bound by rank ${slowest.rank}.` : "";
  return [h("p", null, `${s.name}: the step of ${togetherWords()} takes ${time(s.step_ns)} (${s.step_is}), bound by ${s.step_bound_by}. ` +
      `Alone, rank ${slowest.rank} takes longest for a step: ${time(slowest.own_step_ms * 1e6)}.`),
    h("p", null, "An own cycle is what a rank takes when it waits for nobody; when the step repeats, the longest own cycle bounds it, " +
      "and the rank that has it need not be the one that came late in the recorded window, which may only have begun late, once." + other),
    h("p", {class: "quiet"}, `Except for "own step", times of ranks are sums over the recorded window of ${time(s.window_ms * 1e6)}. ` +
      "\"Last\" is how often the others waited for a rank.")];
}

function ranks() {
  if (!together) return;
  const place = h("div"), numbers = together.ranks.recorded;
  const show = (s) => place.replaceChildren(...ranksText(s), rankBars(s.per_rank),
    h("div", {class: "legend"}, ...[["gpu", "compute"], ["comm", "transfers"], ["waits", "waits for other ranks"], ["idle", "nothing to do on the GPU: the host, or the end of the window"]].map(([kind, name]) =>
      h("span", null, h("span", {class: `bar swatch ${kind}`}), name)), h("span", null, "dashed: own cycle, the rank alone")),
    numbers.length <= kMostRanksInAGrid && s.waits.length ? h("h3", null, "Who waits for whom") : null,
    numbers.length <= kMostRanksInAGrid && s.waits.length ? waitGrid(s.waits, numbers) : null, rankTable(s.per_rank));
  const told = together.scenarios.filter((s) => s.step_ms !== null);
  const parts = [];
  if (told.length > 1) {
    const start = told.length - 1;
    parts.push(h("div", {class: "tools"}, h("select", {"aria-label": "scenario of the ranks", onchange: (e) => show(told[e.target.value])},
      ...told.map((s, i) => h("option", {value: i, selected: i === start}, s.name)))));
    show(told[start]);
  } else {
    show(told[0]);
  }
  const checks = together.ranks.check;
  section("together", "The ranks together", ...parts, place, h("p", {class: "quiet"},
    `Replayed with one transfer for each kind and size, collectives are ${digits(checks.duration_error_pct, 2)} % off.` +
    (checks.ghosts ? ` ${plural(checks.ghosts, "collective")} wait for ranks that were not recorded.` : "")));
}
