"""A host with one GPU, played forward in time, and what the PyTorch profiler would have written down.

It shares nothing with daydream: no rule, no code, no learned lag. Times are whole nanoseconds. GPU work
begins when its launch has arrived, its stream is free and what the stream waits for is done; a launch
into a full queue returns when the operation 1021 places earlier starts; a copy from pageable memory
holds its call until it is done, one from pinned memory does not. `change` makes kinds of work longer
or shorter: {"kernel": 0.5, "host": 3, "comm": 0}.
"""
import collections
import random

QUEUE = 1022  # places, as measured on a V100 and two H100 (docs/how-it-works.md, rule Q)
ARRIVES, FOLLOWS = 1800, 900  # chosen; ns from a launch to its kernel, and from one kernel to the next
MAIN, ENGINE = 100, 200   # thread numbers
COMPUTE, SIDE, COMM = 7, 20, 30  # streams


class Machine:
    def __init__(self, change):
        self.change = change
        self.random = random.Random()
        self.clock = {MAIN: 0, ENGINE: 0}
        self.thread = MAIN
        self.free = {}     # by stream: end of its last work
        self.awaits = {}   # by stream: until when its next work waits for another stream
        self.queue = collections.defaultdict(collections.deque)  # by stream: starts of the last launches
        self.events = []
        self.recording = False
        self.window = None       # where the recording begins
        self.correlation = 1000
        self.operator = 0
        self.first_start = None  # of the GPU work of this step

    @property
    def now(self):
        return self.clock[self.thread]

    @now.setter
    def now(self, time):
        self.clock[self.thread] = time

    def length(self, ns, percent, kind=None):
        varied = ns * (1 + self.random.uniform(-percent, percent) / 100)
        return max(0, int(varied * self.change.get(kind, 1)))

    def work(self, ns):
        self.now += self.length(ns, 10, "host")

    def record(self, category, name, begin, end, **where):
        args = where.pop("args", {})
        self.events.append({"ph": "X", "cat": category, "name": name, "ts": begin, "dur": end - begin,
                            "recorded": self.recording, "args": args, **where})

    def span(self, category, name, begin):
        self.record(category, name, begin, self.now, pid=1, tid=self.thread,
                    args={"External id": self.operator} if category == "cpu_op" else {})

    def call(self, name, begin, until=0):
        self.now = max(self.now, until)
        self.record("cuda_runtime", name, begin, self.now, pid=1, tid=self.thread,
                    args={"External id": self.operator, "correlation": self.correlation})

    def put(self, category, name, stream, length, ready, **args):
        """GPU work of the last call; returns its start and end."""
        after = self.free[stream] + FOLLOWS if stream in self.free else 0
        start = max(ready, after, self.awaits.pop(stream, 0))
        self.free[stream] = start + length
        self.record(category, name, start, start + length, pid=0, tid=stream,
                    args={"device": 0, "context": 1, "stream": stream, "correlation": self.correlation,
                          "External id": self.operator, **args})
        if self.first_start is None:
            self.first_start = start
        return start, start + length

    def launch(self, name, ns, stream=COMPUTE, kind="kernel", blocks=1000):
        self.correlation += 1
        begin, queue = self.now, self.queue[stream]
        room = queue.popleft() if len(queue) == QUEUE - 1 else 0
        self.now += self.length(4000, 20, "host")
        self.call("cudaLaunchKernel", begin, room)
        start, _ = self.put("kernel", name, stream, self.length(ns, 2, kind), self.now + ARRIVES,
                            grid=[blocks, 1, 1], block=[256, 1, 1])
        queue.append(start)

    def launch_graph(self, kernels):
        self.correlation += 1
        begin = self.now
        self.now += self.length(8000, 20, "host")
        self.call("cudaGraphLaunch", begin)
        for name, ns in kernels:
            self.put("kernel", name, COMPUTE, self.length(ns, 2, "kernel"), self.now + ARRIVES,
                     grid=[1000, 1, 1], block=[256, 1, 1])

    def upload(self, ns, pageable):
        self.correlation += 1
        begin = self.now
        self.now += self.length(6000, 20, "host")
        name = f"Memcpy HtoD ({'Pageable' if pageable else 'Pinned'} -> Device)"
        arrives = self.now if pageable else self.now + ARRIVES
        _, end = self.put("gpu_memcpy", name, COMPUTE, self.length(ns, 2), arrives, bytes=10 * ns)
        self.call("cudaMemcpyAsync", begin, end + 1000 if pageable else 0)

    def read(self):
        """Tensor.item(): four bytes to the host, and a wait for them."""
        begin = self.now
        self.operator += 1
        self.work(3000)
        self.correlation += 1
        copy = self.now
        self.now += self.length(5000, 20, "host")
        _, end = self.put("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", COMPUTE, 1500,
                          self.now + ARRIVES, bytes=4)
        self.call("cudaMemcpyAsync", copy, end + 500)
        self.wait("cudaStreamSynchronize", end)
        self.work(2000)
        self.span("cpu_op", "aten::_local_scalar_dense", begin)

    def wait(self, name, until):
        self.correlation += 1
        begin = self.now
        self.now += self.length(2000, 0, "host")
        self.call(name, begin, until + 3000)

    def short_call(self, name):
        self.correlation += 1
        begin = self.now
        self.now += self.length(1500, 20, "host")
        self.call(name, begin)

    def await_stream(self, waiting, other):
        self.short_call("cudaEventRecord")
        until = self.free.get(other, 0)
        self.short_call("cudaStreamWaitEvent")
        self.awaits[waiting] = max(self.awaits.get(waiting, 0), until)

    def begin_window(self):
        self.window, self.recording, self.first_recorded = self.now, True, self.correlation

    def trace(self):
        """As the profiler writes it: what was called in the window, and what the GPU began in it."""
        def is_seen(event):
            backlog = event["pid"] == 0 and event["args"]["correlation"] <= self.first_recorded
            return event["recorded"] or (backlog and event["ts"] >= self.window)
        events = [dict(e, ts=e["ts"] / 1000, dur=e["dur"] / 1000) for e in self.events if is_seen(e)]
        for event in events:
            del event["recorded"]
        gpu = {"id": 0, "name": "NVIDIA A100-SXM4-40GB", "totalGlobalMem": 42e9, "computeMajor": 8,
               "computeMinor": 0, "numSms": 108, "maxThreadsPerMultiprocessor": 2048}
        return {"schemaVersion": 1, "deviceProperties": [gpu], "traceEvents": events}
