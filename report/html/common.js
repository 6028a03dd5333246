// Elements, numbers and the data of the page. Text only ever becomes text, never markup.

/** @param {string} id @returns {any} */
function element(id) { return document.getElementById(id); }

// The JSON of a block; null when the page has none.
function block(id) {
  const found = element(id);
  return found ? JSON.parse(found.textContent) : null;
}

// h("td", {class: "name", onclick: f, style: {left: "3%"}}, "text", child, ...)
/** @param {string} tag @param {any} [attributes] @param {any[]} children @returns {any} */
function h(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (key === "style") for (const [k, v] of Object.entries(value)) made.style.setProperty(k, v);
    else made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.flat().filter((c) => c !== null && c !== undefined));
  return made;
}

function svg(tag, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function digits(value, places) {
  return value.toLocaleString("en-US", {minimumFractionDigits: places, maximumFractionDigits: places});
}

// Three or more significant digits: 12.3, 1.23, 123.
function short(value) {
  const size = Math.abs(value);
  return digits(value, size >= 100 ? (size >= 1000 ? 0 : 1) : size >= 10 ? 1 : 2);
}

/** @type {[string, number][]} */
const kUnits = [["s", 1e9], ["ms", 1e6], ["us", 1e3], ["ns", 1]];
function unitFor(ns) {
  return kUnits.find(([, size]) => Math.abs(ns) >= (size === 1e9 ? 1e10 : size)) || kUnits[3];
}
// A number and its unit stay on one line.
const kJoin = "\u00a0";
function time(ns, unit) {
  if (ns === null || ns === undefined) return "-";
  if (ns === 0) return "0";
  // What would be 0.00 in the unit of its column has its own.
  const own = !unit || (ns !== 0 && Math.abs(ns / unit[1]) < 0.005);
  const [name, size] = own ? unitFor(ns) : unit;
  const value = ns / size;
  // Without a sign between thousands, as in the findings, which are text of the command.
  return `${value.toFixed(size === 1 ? 0 : Math.abs(value) >= 10 ? 1 : 2)}${kJoin}${name}`;
}
function change(ns, unit) {
  return (ns > 0 ? "+" : ns < 0 ? "\u2212" : "") + time(Math.abs(ns), unit);
}
// "+16.2 %", "\u22120.1 %"
function signed(pct, places = 1) {
  return `${pct > 0 ? "+" : pct < 0 ? "\u2212" : ""}${digits(Math.abs(pct), places)}${kJoin}%`;
}
function range(pair, format) {
  return pair ? `${format(pair[0])} \u2013 ${format(pair[1])}` : "";
}
function percent(share, places = 1) {
  return Number.isFinite(share) ? `${digits(100 * share, places)}${kJoin}%` : "-";
}
function times(factor) {
  return factor === null ? "-" : `${digits(factor, 2)}x`;
}
function count(value) {
  return digits(value, Math.abs(value - Math.round(value)) < 0.05 ? 0 : 1);
}
/** @type {[string, number][]} */
const kSizes = [["TB", 1e12], ["GB", 1e9], ["MB", 1e6], ["kB", 1e3]];
function size(bytes) {
  for (const [name, unit] of kSizes) {
    if (Math.abs(bytes) >= unit) return `${digits(bytes / unit, 1)}${kJoin}${name}`;
  }
  return bytes === 0 ? "0" : `${digits(bytes, 0)}${kJoin}B`;
}

function sizeChange(bytes) {
  return `${bytes < 0 ? "\u2212" : bytes > 0 ? "+" : ""}${size(Math.abs(bytes))}`;
}
function plural(number, what) {
  return `${count(number)} ${what}${number === 1 ? "" : "s"}`;
}
// The middle left out of what is too long for a line.
function shortened(text, most) {
  if (text.length <= most) return text;
  const end = Math.floor(most / 3);
  return `${text.slice(0, most - end - 1)}\u2026${text.slice(-end)}`;
}

// What may be wider than the page: it scrolls by itself, and fades where there is more of it.
function wide(...children) {
  const made = h("div", {class: "wide"}, ...children);
  const look = () => {
    const over = made.scrollWidth > made.clientWidth + 1;
    made.classList.toggle("more", over && made.scrollLeft + made.clientWidth < made.scrollWidth - 1);
    if (over) made.tabIndex = 0;
    else made.removeAttribute("tabindex");
  };
  made.addEventListener("scroll", look);
  const watch = new ResizeObserver(look);
  for (const e of [made, ...made.children]) watch.observe(e);
  return made;
}

// A part of the page with a heading, which the list at the top links to.
function section(id, title, ...children) {
  const made = h("section", {id, "aria-labelledby": `${id}-title`},
                 h("h2", {id: `${id}-title`}, title), ...children);
  element("main").append(made);
  element("nav").append(h("a", {href: `#${id}`}, title));
  return made;
}

// The colour of a square, from 0 to 1: never so strong that the number on it is hard to read.
function heat(share) { return {"--heat": `${Math.round(60 * share)}%`}; }

function csvField(value) {
  const text = String(value);
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

// Copies, also where the page was opened from a file and the browser has no clipboard for it.
async function copy(text, button) {
  let done = true;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = h("textarea", {class: "copied"});
    area.value = text;
    document.body.append(area);
    area.select();
    done = document.execCommand("copy");
    area.remove();
  }
  const before = button.textContent;
  button.textContent = done ? "copied" : "the browser refuses";
  setTimeout(() => { button.textContent = before; }, 1500);
}
