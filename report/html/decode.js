// The slices of the timelines, out of the packed numbers (report/html/timeline_block.h).

async function unpacked(base64) {
  const packed = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// Rows of all sides: {side, title, slices, begin, end, name, tasks}; times in units.
async function decodeRows(timeline) {
  const bytes = await unpacked(timeline.data);
  let at = 0;
  const next = () => {
    let value = 0;
    for (let factor = 1; ; factor *= 128) {
      const byte = bytes[at++];
      value += (byte & 127) * factor;
      if (byte < 128) return value;
    }
  };
  const rows = [];
  timeline.sides.forEach((side, s) => {
    for (const {title, slices} of side.rows) {
      const begin = new Float64Array(slices), end = new Float64Array(slices);
      const name = new Uint32Array(slices), tasks = new Uint32Array(slices);
      for (let i = 0; i < slices; ++i) begin[i] = next();
      let last = 0;
      for (let i = 0; i < slices; ++i) {
        begin[i] += last;
        last = end[i] = begin[i] + next();
      }
      for (let i = 0; i < slices; ++i) name[i] = next();
      for (let i = 0; i < slices; ++i) tasks[i] = next() + 1;
      rows.push({side: s, title, slices, begin, end, name, tasks});
    }
  });
  if (at !== bytes.length) throw new Error("the timeline does not end where it should");
  return rows;
}

// The first slice of `row` that ends after `t`.
function firstAfter(row, t) {
  let low = 0, high = row.slices;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (row.end[middle] > t) high = middle;
    else low = middle + 1;
  }
  return low;
}
