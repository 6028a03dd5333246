// Tables that are sorted by a click on a heading, searched, and copied as CSV.

const kFirstRows = 25, kLongestName = 90;

// The sum of the rows that are not on the page (report/html/cut_groups.h) stays last.
const kOthers = /^\[\d+ others\]$/;
function isRest(row) { return kOthers.test(row.name); }

// Lines of a long name begin after a comma, or after what else `at` says.
function breakable(text, at = /(?<=,)/) {
  return text.split(at).flatMap((part, i) => i ? [h("wbr"), part] : [part]);
}

// `columns`: {title, of: row -> value, show: value -> text, text: is it text}. Numbers sort
// downwards first.
/** @param {Column[]} columns @param {any[]} rows @param {string} name */
function sortable(columns, rows, name) {
  let by = -1, down = true, all = false, words = "";
  const body = h("tbody"), first = h("p", {class: "quiet on-paper"}), more = h("button", {type: "button", onclick: () => { all = !all; fill(); }});
  const headings = columns.map((c, i) => h("th", {scope: "col", class: c.text ? "text" : null},
    h("button", {type: "button", onclick: () => {
      down = by === i ? !down : !c.text;
      by = i;
      fill();
    }}, c.title)));
  const wanted = () => {
    const found = rows.filter((r) => String(columns[0].of(r)).toLowerCase().includes(words));
    const rest = (r) => isRest(r) ? 1 : 0;
    if (by < 0) return found.sort((a, b) => rest(a) - rest(b));
    const {of, text} = columns[by];
    const order = (a, b) => text ? String(of(a)).localeCompare(String(of(b))) :
      (of(a) ?? -Infinity) - (of(b) ?? -Infinity);
    return found.sort((a, b) => rest(a) - rest(b) || (down ? -1 : 1) * order(a, b));
  };
  const cell = (c, i, r) => {
    const text = c.show ? c.show(c.of(r), r) : String(c.of(r)), name = i === 0 && c.text;
    return h("td", {class: name ? "name" : c.text ? "text" : null, title: name && text.length > kLongestName ? text : null},
      name ? breakable(shortened(text, kLongestName)) : text);
  };
  const fill = () => {
    const found = wanted();
    const shown = all ? found : found.filter((r, i) => i < kFirstRows || isRest(r));
    body.replaceChildren(...shown.map((r) => h("tr", null, ...columns.map((c, i) => cell(c, i, r)))));
    headings.forEach((th, i) => {
      if (i === by) th.setAttribute("aria-sort", down ? "descending" : "ascending");
      else th.removeAttribute("aria-sort");
    });
    more.hidden = found.length <= kFirstRows;
    first.textContent = shown.length < found.length ? `${shown.length} of ${found.length} rows; the page has them all.` : "";
    more.textContent = all ? "show fewer" : `show all ${found.length}`;
  };
  // What numbers are copied in: those that are shown as times are nanoseconds, sizes are bytes.
  const unitOf = (c) => {
    const shown = c.text || !c.show ? [] : rows.map((r) => c.show(c.of(r), r));
    if (shown.some((text) => /\d\s(ns|us|\u00b5s|ms|s)$/.test(text))) return ", ns";
    return shown.some((text) => /\d\s[kMGT]?B$/.test(text)) ? ", bytes" : "";
  };
  const csv = () => [columns.map((c) => csvField(c.title + unitOf(c))).join(","),
    ...wanted().map((r) => columns.map((c) => csvField(c.of(r) ?? "")).join(","))].join("\n") + "\n";
  const copying = h("button", {type: "button", class: "csv"}, "copy as CSV");
  copying.addEventListener("click", () => copy(csv(), copying));
  const search = h("input", {type: "search", placeholder: "search names", "aria-label": `search ${name}`,
    oninput: (e) => { words = e.target.value.toLowerCase(); fill(); }});
  fill();
  const rest = rows.some(isRest) ? h("p", {class: "quiet"}, "The last row sums what is not on this page; ",
    h("code", null, "daydream summary --format csv"), " has every row.") : null;
  return h("div", null, h("div", {class: "tools"}, search, copying), rest,
           wide(h("table", null, h("caption", {hidden: true}, name),
                                       h("thead", null, h("tr", null, ...headings)), body)),
           first, h("div", {class: "tools"}, more));
}

const kRounding = 1e-6;  // of the step: what ends of slices are rounded by

// A summary of the step before and, when there is one, after, row by row by name.
function groupTable(before, after, name) {
  const whole = before.window_ns, unit = unitFor(whole);
  const then = new Map((after ? after.groups : []).map((g) => [g.name, g]));
  const none = {time_ns: 0, calls: 0, critical_path_ns: 0};
  const rows = before.groups.map((g) => ({...g, then: then.get(g.name) || none}));
  const known = new Set(before.groups.map((g) => g.name));
  for (const g of then.values()) {
    if (!known.has(g.name)) rows.push({...none, name: g.name, then: g});
  }
  const show = (ns) => time(ns, unit);
  const columns = [
    {title: name, of: (r) => r.name, text: true},
    {title: "GPU time", of: (r) => r.time_ns, show},
    {title: baseline.step_ms === null ? "share" : "of step", of: (r) => r.time_ns / whole, show: (v) => percent(v)},
    {title: "calls", of: (r) => r.calls, show: count},
    {title: "average", of: (r) => r.calls > 0 ? r.time_ns / r.calls : null, show: (v) => time(v)},
    {title: "critical path", of: (r) => r.critical_path_ns, show},
  ];
  if (after) {
    columns.push({title: "GPU after", of: (r) => r.then.time_ns, show},
                 {title: "path after", of: (r) => r.then.critical_path_ns, show},
                 {title: "path change", of: (r) => r.then.critical_path_ns - r.critical_path_ns,
                  show: (ns) => change(Math.abs(ns) < kRounding * whole ? 0 : ns, unit)});
  }
  return sortable(columns, rows, name);
}

function hostTable(before, after) {
  const unit = unitFor(before.window_ns), show = (ns) => time(ns, unit);
  const key = (g) => `${g.kind} ${g.name}`;
  const then = new Map((after ? after.groups : []).map((g) => [key(g), g]));
  const columns = [
    {title: "host work", of: (r) => r.name, text: true},
    {title: "kind", of: (r) => r.kind, text: true},
    {title: "own time", of: (r) => r.self_ns, show},
    {title: "waiting", of: (r) => r.waiting_ns, show},
    // Of what is summed one may be inside of another.
    {title: "with inside", of: (r) => isRest(r) ? null : r.total_ns, show},
    {title: "calls", of: (r) => r.calls, show: count},
    {title: "critical path", of: (r) => r.critical_path_ns, show},
  ];
  if (after) {
    columns.push({title: "path after", of: (r) => then.get(key(r))?.critical_path_ns ?? 0, show});
  }
  return sortable(columns, before.groups, "host work");
}

// Of the page: on paper each shows all of its parts, as nobody can click there.
const kTabs = [];

// Buttons, of which one shows its part: [title, function that makes it].
function tabs(name, parts) {
  let now = 0;
  const panel = h("div", {role: "tabpanel"});
  const buttons = parts.map(([title, make], i) => h("button", {
    type: "button", role: "tab", "aria-selected": String(i === 0), tabindex: i === 0 ? 0 : -1,
    onclick: () => choose(i),
    onkeydown: (e) => {
      const step = {ArrowRight: 1, ArrowLeft: parts.length - 1}[e.key];
      if (step) choose((i + step) % parts.length, true);
    }}, title));
  const choose = (chosen, focus) => {
    now = chosen;
    buttons.forEach((b, i) => {
      b.setAttribute("aria-selected", String(i === chosen));
      b.tabIndex = i === chosen ? 0 : -1;
    });
    if (focus) buttons[chosen].focus();
    panel.replaceChildren(parts[chosen][1]());
  };
  panel.append(parts[0][1]());
  kTabs.push({all: () => panel.replaceChildren(...parts.flatMap(([title, make]) => [h("h3", null, title), make()])),
              one: () => choose(now)});
  return h("div", null, h("div", {class: "tools", role: "tablist", "aria-label": name}, ...buttons), panel);
}
