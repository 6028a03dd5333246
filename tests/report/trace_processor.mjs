// Perfetto's trace_processor, as its page has it (WebAssembly), for a program without a browser:
// node trace_processor.mjs FOLDER. FOLDER has engine_bundle.js and the .wasm files beside it.
// Requests (TraceProcessorRpcStream) come on standard input, each after its length in 4 bytes, the
// lowest first; answers go to standard output as they are.
import fs from "node:fs";
import path from "node:path";

const folder = process.argv[2];

/** What the engine loads its machine code with. */
class FileRequest {
  open(_method, name) {
    this.name = path.join(folder, path.basename(name));
  }
  send() {
    this.response = fs.readFileSync(this.name);
  }
}

const quiet = { log() {}, warn() {}, error: console.error };
const worker = { location: { href: "file:///" } };
const text = fs.readFileSync(path.join(folder, "engine_bundle.js"), "utf8");
// It is made for a worker of a browser, and refuses Node's `process`.
new Function("self", "process", "WorkerGlobalScope", "XMLHttpRequest", "console", text)(
  worker, undefined, class {}, FileRequest, quiet);
const port = { postMessage: (bytes) => fs.writeSync(1, bytes) };
worker.onmessage({ data: port });
await new Promise((ready) => setTimeout(ready)); // the engine asks for its buffers first

function read(length) {
  const bytes = new Uint8Array(length);
  for (let at = 0; at < length; ) {
    const got = fs.readSync(0, bytes, at, length - at, null);
    if (got === 0) process.exit(0);
    at += got;
  }
  return bytes;
}
for (;;) {
  const length = new DataView(read(4).buffer).getUint32(0, true);
  port.onmessage({ data: read(length) });
}
