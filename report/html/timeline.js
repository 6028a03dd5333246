// Timelines before and after on one axis, drawn on a canvas.

// By where a slice is: what holds up the critical path, what the GPU does, what the host does. Within one of these
// no two are alike (tests/page/page_test.py holds how far apart they are).
const kPathColours = {GPU: "#3f7fc9", CPU: "#d08f2e", comm: "#c2504e", data: "#6c9a45"};
const kGpuColours = {
  gemm: "#1f5fa8", conv: "#5ba4e6", attention: "#8a5fc7", elementwise: "#f2a541", reduce: "#a3541c",
  norm: "#2f8f46", softmax: "#a5d152", pool: "#35b5aa", optimizer: "#8f1f45", index: "#6b5040",
  copy: "#8f8d3a", memcpy: "#e0569f", memset: "#f2b8d6", collective: "#e5383b", delay: "#b9c0c9",
};
const kHostColours = {host: "#8f9bab", call: "#d9bd4e", wait: "#d3d8df"};
const kColours = {...kPathColours, ...kGpuColours, ...kHostColours};
const kOtherColour = "#4f5661", kFaint = "#80808040";
const kRow = 17, kHead = 24, kAxis = 22, kMostRows = 120, kMostOnPath = 6, kLeastLetters = 5;

const kInk = "#14181d", kChalk = "#ffffff";
// What can be read on a colour: dark on light ones, white on dark ones.
function inkOn(colour) {
  const [r, g, b] = [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16));
  return 0.299 * r + 0.587 * g + 0.114 * b > 125 ? kInk : kChalk;
}

// As much of a text as there is room for, ending in a sign that it is cut; nothing where that says nothing.
function cutTo(pen, text, room) {
  if (pen.measureText(text).width <= room) return text;
  let keep = Math.min(text.length - 1, Math.ceil(room / 4));
  while (keep >= kLeastLetters && pen.measureText(`${text.slice(0, keep)}\u2026`).width > room) --keep;
  return keep >= kLeastLetters ? `${text.slice(0, keep)}\u2026` : "";
}

// The colours that are drawn, group by group.
function timelineLegend(view) {
  const {timeline} = view, used = new Set();
  for (const row of view.rows) for (const name of new Set(row.name)) used.add(timeline.classes[timeline.names[name][3]]);
  const known = Object.keys(kColours), others = [...used].filter((c) => c && !known.includes(c)).sort().join(", ");
  used.add(others);  // of one colour
  /** @type {[string, string[]][]} */
  const groups = [["critical path", Object.keys(kPathColours)], ["GPU", Object.keys(kGpuColours).concat(others || [])],
    ["host", Object.keys(kHostColours)]];
  return groups.map(([title, kinds]) => h("div", {class: "legend"}, h("b", null, `${title}:`), ...kinds.filter((c) => used.has(c)).map((c) =>
      h("span", null, h("span", {class: "swatch", style: {background: kColours[c] || kOtherColour}}), c === "wait" ? "wait (doing nothing)" : c))))
    .filter((line) => line.children.length > 1);
}

class TimelineView {
  /**
   * @param {TimelineData} timeline @param {Row[]} rows @param {HTMLCanvasElement} canvas
   * @param {(slice: Slice | null) => void} told what to do when another slice is selected
   */
  constructor(timeline, rows, canvas, told) {
    this.timeline = timeline;
    this.canvas = canvas;
    this.told = told;
    this.words = "";
    this.cause = 0;
    /** @type {Slice | null} */
    this.selected = null;
    this.frame = 0;
    this.colours = timeline.classes.map((c) => kColours[c] || kOtherColour);
    this.rows = this.shown(rows);
    this.length = Math.max(1, ...rows.map((r) => r.slices ? r.end[r.slices - 1] : 0));
    this.from = 0;
    this.to = this.length;
    this.layOut();
    this.listen();
    this.draw();
  }

  // All rows of a side, or the busiest, in their order.
  shown(rows) {
    this.left_out = 0;
    return this.timeline.sides.flatMap((_, s) => {
      const own = rows.filter((r) => r.side === s && r.slices > 0);
      const busy = (r) => r.end.reduce((sum, end, i) => sum + end - r.begin[i], 0);
      const kept = new Set([...own].sort((a, b) => busy(b) - busy(a)).slice(0, kMostRows));
      this.left_out += own.length - kept.size;
      return own.filter((r) => kept.has(r));
    });
  }

  layOut() {
    let y = kAxis, side = -1;
    for (const row of this.rows) {
      if (row.side !== side) y += kHead;
      side = row.side;
      row.y = y;
      y += kRow;
    }
    this.height = y + 6;
    this.canvas.style.height = `${this.height}px`;
  }

  text(i) { return this.timeline.strings[i]; }
  nameOf(row, i) {
    const [name, op, layer, kind] = this.timeline.names[row.name[i]];
    return {name: this.text(name), op: this.text(op), layer: this.text(layer),
            kind: this.timeline.classes[kind]};
  }
  time(units) { return time(units * this.timeline.unit_ns); }

  // What an optimization changed is drawn, all else is faint; 0 ends that. Selects the first such slice, and
  // shows all where it is not in view; where no row that is drawn has one, nothing is faint.
  showCause(cause) {
    const row = cause > 0 ? this.rows.find((r) => r.cause.includes(cause)) : undefined;
    this.cause = row ? cause : 0;
    if (row) {
      const i = row.cause.indexOf(cause);
      this.select({row, i});
      if (row.begin[i] >= this.to || row.end[i] <= this.from) this.all();
    }
    this.later();
  }
  hidden(row, i) {
    return this.words !== "" && !this.matches[row.name[i]] || this.cause > 0 && row.cause[i] !== this.cause;
  }

  // Slices that belong to one: the tasks below a piece of the critical path, the piece that a task is on, and
  // the same task on the other side. [what it is, slice].
  /** @param {Slice} slice @returns {[string, Slice][]} */
  related({row, i}) {
    const own = this.rows.filter((r) => r.side === row.side), path = own.find((r) => r.title === "critical path");
    /** @type {[string, Slice][]} */
    const links = [];
    if (row === path) {
      const from = row.begin[i], to = row.end[i], found = [];
      for (const r of own) {
        if (r === path) continue;
        for (let j = firstAfter(r, from); j < r.slices && r.begin[j] < to; ++j) {
          found.push({row: r, i: j, inside: Math.min(to, r.end[j]) - Math.max(from, r.begin[j])});
        }
      }
      const is = (s) => this.resourceOf(s) === this.nameOf(row, i).name;
      found.sort((a, b) => b.inside - a.inside);
      for (const s of found.filter(is).slice(0, kMostOnPath)) links.push([shortened(this.nameOf(s.row, s.i).name, 40), s]);
      return links;
    }
    if (path) {
      const j = firstAfter(path, (row.begin[i] + row.end[i]) / 2);
      if (j < path.slices && path.begin[j] <= (row.begin[i] + row.end[i]) / 2 &&
          this.resourceOf({row, i}) === this.nameOf(path, j).name) {
        links.push(["may be on the critical path", {row: path, i: j}]);
      }
    }
    if (row.old && row.was[i] >= 0 && this.rows.includes(row.old)) links.push(["before", {row: row.old, i: row.was[i]}]);
    for (const r of this.rows) {
      const j = r.old === row ? r.was.indexOf(i) : -1;
      if (j >= 0) links.push(["after", {row: r, i: j}]);
    }
    return links;
  }
  // As the row of the critical path calls it.
  resourceOf({row, i}) {
    const {kind} = this.nameOf(row, i);
    if (kind === "collective" || row.title.startsWith("channel ")) return "comm";
    if (row.title.includes("loader")) return "data";
    return row.title.startsWith("GPU ") ? "GPU" : "CPU";
  }

  // Which names hold the words that are searched for.
  search(words) {
    this.words = words.toLowerCase();
    this.matches = this.timeline.names.map(([name, op, layer]) =>
      [name, op, layer].some((t) => this.text(t).toLowerCase().includes(this.words)));
    this.later();
  }
  nextMatch() {
    if (!this.words) return;
    let best = null;
    const {row: at, i: place} = this.selected || {row: this.rows[0], i: -1};
    const start = this.rows.indexOf(at);
    for (let r = 0; r <= this.rows.length && !best; ++r) {
      const row = this.rows[(start + r) % this.rows.length];
      for (let i = r === 0 ? place + 1 : 0; i < row.slices && !best; ++i) {
        if (this.matches[row.name[i]]) best = {row, i};
      }
    }
    if (best) this.select(best, true);
  }

  later() {
    if (!this.frame) this.frame = requestAnimationFrame(() => { this.frame = 0; this.draw(); });
  }

  draw() {
    const began = performance.now();
    const ratio = window.devicePixelRatio || 1, width = this.canvas.clientWidth;
    if (this.canvas.width !== Math.round(width * ratio) ||
        this.canvas.height !== Math.round(this.height * ratio)) {
      this.canvas.width = Math.round(width * ratio);
      this.canvas.height = Math.round(this.height * ratio);
    }
    const pen = this.canvas.getContext("2d"), style = getComputedStyle(document.body);
    this.ink = style.getPropertyValue("--text");
    this.quiet = style.getPropertyValue("--quiet");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, this.height);
    pen.font = "11px system-ui, sans-serif";
    pen.textBaseline = "middle";
    // Titles have what they need, up to a third of the picture.
    const titles = Math.max(...this.rows.map((r) => pen.measureText(r.title).width), 0);
    this.left = Math.max(84, Math.min(Math.ceil(titles) + 12, Math.round(width * 0.33)));
    this.scale = (width - this.left) / (this.to - this.from);
    this.drawAxis(pen, width);
    let side = -1;
    for (const row of this.rows) {
      if (row.side !== side) this.drawHead(pen, row);
      side = row.side;
      this.drawRow(pen, row, width);
      this.drawTitle(pen, row);
    }
    if (this.selected) this.drawSelected(pen);
    this.took = performance.now() - began;
  }

  drawAxis(pen, width) {
    const span = (this.to - this.from) / Math.max(2, width / 110);
    let step = 10 ** Math.floor(Math.log10(span));
    step *= span / step > 5 ? 10 : span / step > 2 ? 5 : 2;
    const unit = unitFor(this.to * this.timeline.unit_ns);
    pen.fillStyle = this.quiet;
    let taken = 0;
    for (let t = Math.ceil(this.from / step) * step; t <= this.to; t += step) {
      const x = this.x(t);
      pen.fillRect(x, 0, 1, 5);
      const ns = t * this.timeline.unit_ns;
      const words = step * this.timeline.unit_ns >= unit[1] / 100 ? time(ns, unit) : `${digits(ns / unit[1], 5)} ${unit[0]}`;
      // Where there is no room to the right of a mark, what it says stands to the left.
      const wide = pen.measureText(words).width, at = x + 3 + wide <= width ? x + 3 : x - 3 - wide;
      if (at < taken) continue;
      pen.fillText(words, at, 12);
      taken = at + wide + 4;
    }
  }

  // The name of a side, and where the steps that count begin.
  drawHead(pen, row) {
    const side = this.timeline.sides[row.side], y = row.y - kHead / 2 + 2;
    pen.fillStyle = this.ink;
    pen.font = "600 12px system-ui, sans-serif";
    pen.fillText(`${side.name} (${side.description})`, 4, y);
    pen.font = "11px system-ui, sans-serif";
    const rows = this.rows.filter((r) => r.side === row.side).length;
    pen.fillStyle = kFaint;
    for (const [, begin, end] of side.windows) {
      for (const t of [begin, end]) {
        if (t >= this.from && t <= this.to) pen.fillRect(this.x(t), row.y - 4, 1, rows * kRow + 4);
      }
    }
  }

  // Slices thinner than a pixel share one, in the colour of the longest, the paler the less they fill.
  drawRow(pen, row, width) {
    const {begin, end, name} = row, height = kRow - 3, classes = this.timeline.names;
    const searched = this.words !== "" || this.cause > 0;
    let pixel = -1, busy = 0, longest = 0, colour = "";
    let from = 0, to = -1, shade = 0, shown = "";  // pixels that look alike
    const draw = () => {
      if (to < 0) return;
      pen.globalAlpha = shade;
      pen.fillStyle = shown;
      pen.fillRect(from, row.y, to - from, height);
      pen.globalAlpha = 1;
      to = -1;
    };
    const flush = () => {
      if (pixel < 0) return;
      const full = Math.ceil(4 * Math.min(1, busy)) / 4;
      if (to !== pixel || shade !== full || shown !== colour) {
        draw();
        [from, shade, shown] = [pixel, full, colour];
      }
      to = pixel + 1;
      pixel = -1;
    };
    for (let i = firstAfter(row, this.from); i < row.slices && begin[i] < this.to; ++i) {
      const x0 = this.x(begin[i]), x1 = this.x(end[i]);
      const own = searched && this.hidden(row, i) ? kFaint : this.colours[classes[name[i]][3]];
      if (x1 - x0 >= 1) {
        flush();
        draw();
        const left = Math.max(this.left, x0), wide = Math.min(width, x1) - left;
        pen.fillStyle = own;
        pen.fillRect(left, row.y, Math.max(1, wide - (wide > 3 ? 0.5 : 0)), height);
        if (wide > 34) this.drawName(pen, row, i, left, wide);
        continue;
      }
      const x = Math.max(this.left, Math.floor(x0));
      if (x !== pixel) {
        flush();
        [pixel, busy, longest] = [x, 0, -1];
      }
      busy += x1 - x0;
      if (end[i] - begin[i] > longest) [longest, colour] = [end[i] - begin[i], own];
    }
    flush();
    draw();
  }

  drawName(pen, row, i, left, wide) {
    const [name, , , kind] = this.timeline.names[row.name[i]], words = cutTo(pen, this.text(name), wide - 6);
    if (!words) return;
    pen.fillStyle = this.words !== "" || this.cause > 0 ? this.ink : inkOn(this.colours[kind]);
    pen.fillText(words, left + 3, row.y + kRow / 2 - 1);
  }

  // Left of the slices, as much of it as there is room for; a click or the pointer says all of it.
  drawTitle(pen, row) {
    pen.fillStyle = this.quiet;
    pen.fillText(cutTo(pen, row.title, this.left - 10), 4, row.y + kRow / 2 - 1);
  }

  drawSelected(pen) {
    const {row, i} = this.selected;
    const x = Math.max(this.left, this.x(row.begin[i])), x1 = this.x(row.end[i]);
    if (x1 < this.left) return;
    pen.strokeStyle = this.ink;
    pen.lineWidth = 2;
    pen.strokeRect(x - 1, row.y - 1, Math.max(3, x1 - x + 2), kRow - 1);
  }

  x(t) { return this.left + (t - this.from) * this.scale; }

  // --- moving

  view(from, to) {
    const span = Math.min(this.length, Math.max(20, to - from));
    this.from = Math.min(Math.max(0, from), this.length - span);
    this.to = this.from + span;
    this.later();
  }
  zoom(factor, at = 0.5) {
    const span = (this.to - this.from) * factor, t = this.from + at * (this.to - this.from);
    this.view(t - at * span, t - at * span + span);
  }
  pan(share) {
    const by = share * (this.to - this.from);
    this.view(this.from + by, this.to + by);
  }
  all() { this.view(0, this.length); }
  zoomTo({row, i}) {
    const span = Math.max(row.end[i] - row.begin[i], 2);
    this.view(row.begin[i] - 2 * span, row.end[i] + 2 * span);
  }

  // The slice at a point of the canvas; in the pixel, where it is thinner than one.
  at(x, y) {
    const row = this.rows.find((r) => y >= r.y && y < r.y + kRow);
    if (!row || x < this.left) return null;
    const i = firstAfter(row, this.from + (x - this.left - 1) / this.scale);
    return i < row.slices && row.begin[i] <= this.from + (x - this.left + 1) / this.scale ? {row, i} : null;
  }
  /** @param {Slice | null} slice @param {boolean} [show] */
  select(slice, show) {
    this.selected = slice;
    if (slice && show && (slice.row.begin[slice.i] < this.from || slice.row.end[slice.i] > this.to ||
                          (slice.row.end[slice.i] - slice.row.begin[slice.i]) * this.scale < 4)) {
      this.zoomTo(slice);
    }
    this.told(slice);
    this.later();
  }
  // The neighbour in the row, or what is near in the next row.
  step(along, across) {
    const {row, i} = this.selected || {row: this.rows[0], i: -1};
    if (!row) return;
    if (along) {
      const next = i + along;
      if (next >= 0 && next < row.slices) this.select({row, i: next}, true);
      return;
    }
    const other = this.rows[this.rows.indexOf(row) + across];
    if (!other) return;
    const t = i < 0 ? this.from : row.begin[i];
    this.select({row: other, i: Math.min(firstAfter(other, t), other.slices - 1)}, true);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const act = {
      w: () => this.zoom(0.6), "+": () => this.zoom(0.6), s: () => this.zoom(1 / 0.6),
      "-": () => this.zoom(1 / 0.6), a: () => this.pan(-0.2), d: () => this.pan(0.2),
      0: () => this.all(), ArrowRight: () => this.step(1, 0), ArrowLeft: () => this.step(-1, 0),
      ArrowDown: () => this.step(0, 1), ArrowUp: () => this.step(0, -1),
      n: () => this.nextMatch(), Enter: () => this.selected && this.zoomTo(this.selected),
      Escape: () => this.select(null),
    }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }

  // How far along the picture a pixel is.
  shareAt(x) { return Math.max(0, x - this.left) / Math.max(1, this.canvas.clientWidth - this.left); }

  listen() {
    const {canvas} = this, down = new Map();
    let moved = 0;
    canvas.addEventListener("keydown", (e) => this.key(e));
    canvas.addEventListener("wheel", (e) => {
      if (!e.ctrlKey && document.activeElement !== canvas) return;
      e.preventDefault();
      this.zoom(Math.exp(e.deltaY * 0.002), this.shareAt(e.offsetX));
    }, {passive: false});
    canvas.addEventListener("pointerdown", (e) => {
      down.set(e.pointerId, e.offsetX);
      canvas.setPointerCapture(e.pointerId);
      moved = 0;
    });
    canvas.addEventListener("pointermove", (e) => {
      if (!down.has(e.pointerId)) {
        const slice = this.at(e.offsetX, e.offsetY);
        const row = this.rows.find((r) => e.offsetY >= r.y && e.offsetY < r.y + kRow);
        canvas.title = slice ? this.describe(slice) : row && e.offsetX < this.left ? row.title : "";
        return;
      }
      const others = [...down].filter(([id]) => id !== e.pointerId);
      const by = e.offsetX - down.get(e.pointerId);
      moved += Math.abs(by);
      if (others.length === 0) {
        this.view(this.from - by / this.scale, this.to - by / this.scale);
      } else {
        const other = others[0][1], before = Math.abs(down.get(e.pointerId) - other);
        this.zoom(before / Math.max(8, Math.abs(e.offsetX - other)), this.shareAt(other));
      }
      down.set(e.pointerId, e.offsetX);
    });
    const up = (e) => {
      if (down.delete(e.pointerId) && moved < 4) this.select(this.at(e.offsetX, e.offsetY));
    };
    canvas.addEventListener("pointerup", up);
    canvas.addEventListener("pointercancel", (e) => down.delete(e.pointerId));
    canvas.addEventListener("dblclick", () => this.selected && this.zoomTo(this.selected));
    new ResizeObserver(() => this.later()).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.later());
  }

  describe(slice) {
    const {row, i} = slice, {name, op, layer, kind} = this.nameOf(row, i);
    const parts = [`${name}: ${this.time(row.end[i] - row.begin[i])} at ${this.time(row.begin[i])}`];
    if (row.tasks[i] > 1) parts.push(`the longest of ${row.tasks[i]} short tasks drawn as one`);
    if (kind && kind !== name) parts.push(kind);
    if (op && op !== "no operator") parts.push(`op ${op}`);
    if (layer && layer !== "no layer") parts.push(`layer ${layer}`);
    return parts.concat(row.title).join(" \u00b7 ");
  }
}
