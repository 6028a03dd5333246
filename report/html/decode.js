// The slices of the timelines, out of the packed numbers (report/html/timeline_block.h).

async function unpacked(base64) {
  const packed = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// Makes "strings", "classes" and "names" of what is packed in `timeline`; a name is [name, op, layer, class].
/** @param {TimelineData} timeline */
async function decodeNames(timeline) {
  const text = JSON.parse(new TextDecoder().decode(await unpacked(timeline.text)));
  const [name, op, layer, kind] = text.names;
  timeline.strings = text.strings;
  timeline.classes = text.classes;
  timeline.names = name.map((n, i) => [n, op[i], layer[i], kind[i]]);
}

// Rows of all sides: {side, title, slices, begin, end, name, tasks, cause, old, was}; times in units. `old` is the
// row of the first side that has most of the tasks, `was` the places of the slices there, or -1.
/** @param {TimelineData} timeline @returns {Promise<Row[]>} */
async function decodeRows(timeline) {
  await decodeNames(timeline);
  const bytes = await unpacked(timeline.data);
  let at = 0;
  const next = () => {
    let value = 0;
    for (let factor = 1; ; factor *= 128) {
      if (at >= bytes.length) throw new Error("the timeline is cut");
      const byte = bytes[at++];
      value += (byte & 127) * factor;
      if (byte < 128) return value;
    }
  };
  const signed = (value) => value % 2 ? -(value + 1) / 2 : value / 2;
  const rows = [];
  timeline.sides.forEach((side, s) => {
    for (const {title, slices, like} of side.rows) {
      const begin = new Float64Array(slices), end = new Float64Array(slices);
      const name = new Uint32Array(slices), tasks = new Uint32Array(slices);
      const old = like === undefined ? null : rows[like];
      const was = new Int32Array(slices).fill(-1);
      for (let i = 0, expected = 0; old && i < slices; ++i) {
        const code = next();
        if (code > 0) expected = 1 + (was[i] = expected + signed(code - 1));
      }
      const pause = (j) => j < 0 ? 0 : old.begin[j] - (j > 0 ? old.end[j - 1] : 0);
      for (let i = 0; i < slices; ++i) begin[i] = signed(next()) + pause(was[i]);
      for (let i = 0, last = 0; i < slices; ++i) {
        const j = was[i];
        begin[i] += last;
        last = end[i] = begin[i] + signed(next()) + (j < 0 ? 0 : old.end[j] - old.begin[j]);
      }
      for (let i = 0; i < slices; ++i) {
        const code = next();
        name[i] = was[i] < 0 ? code : code > 0 ? code - 1 : old.name[was[i]];
      }
      for (let i = 0; i < slices; ++i) tasks[i] = next() + 1;
      const cause = new Uint32Array(slices);
      for (let i = 0; i < slices; ++i) cause[i] = next();
      rows.push({side: s, title, slices, begin, end, name, tasks, cause, old, was});
    }
  });
  if (at !== bytes.length) throw new Error("the timeline does not end where it should");
  return rows;
}

// The first slice of `row` that ends after `t`.
/** @param {Row} row @param {number} t */
function firstAfter(row, t) {
  let low = 0, high = row.slices;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (row.end[middle] > t) high = middle;
    else low = middle + 1;
  }
  return low;
}
