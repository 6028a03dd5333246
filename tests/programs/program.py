"""A training program, drawn at random by its number: layers forward and backward on two threads, an
optimizer, and what real ones have beside: a loader, copies of batches, reads of values, waits for events
and streams, a second stream, CUDA graphs, exchanges of gradients, few or many steps."""
import random

from machine import COMM, COMPUTE, ENGINE, MAIN, SIDE, Machine

WARM_UP = 4  # steps before the recording begins


class Program:
    def __init__(self, number, steps=None):
        """`steps`: so many are recorded, instead of as many as are drawn. Of one, nobody can tell what the next
        would take where they differ: then all are alike."""
        draw = random.Random(number)
        self.number = number
        kernel, host = draw.choice([5, 20, 60, 150, 400]) * 1000, draw.choice([5, 15, 40]) * 1000
        self.layers = []
        for _ in range(draw.randint(5, 60)):
            kernels = [("kernel", int(kernel * draw.uniform(0.1, 2))) for _ in range(draw.randint(1, 5))]
            name = draw.choice(["linear", "conv2d", "softmax", "add"])
            self.layers.append((name, int(host * draw.uniform(0.5, 2)), kernels))
        drawn = draw.choice([1, 2, 3, 4, 5, 6])
        self.steps = steps or drawn
        self.alike = steps == 1
        self.loader = draw.choice([0, 0, draw.randint(1, 8) * 1_000_000])
        self.batch = draw.choice([None, "pinned", "pageable"])
        self.batch_ns = draw.randint(50, 3000) * 1000
        self.reads = draw.choice([None, None, "forward", "end"])
        self.waits = draw.choice([None, None, "event", "stream"])
        self.waits_at_end = draw.random() < 0.2
        self.exchange = int(kernel * draw.uniform(1, 6)) if draw.random() < 0.4 else 0
        self.second_stream = draw.random() < 0.3
        self.graphs = draw.random() < 0.15
        self.marks = draw.random() < 0.8
        self.many_updates = draw.random() < 0.5

    def play(self, change=None):
        """The machine that played it, and the periods of the recorded steps: from the first GPU work of
        each to that of the next."""
        machine = Machine(change or {})
        starts = []
        for step in range(WARM_UP + self.steps + 1):
            if step == WARM_UP:
                machine.begin_window()
            if step == WARM_UP + self.steps:
                machine.recording = False
            machine.first_start = None
            machine.random.seed(self.number * 1000 + (0 if self.alike else step))
            self.step(machine, step)
            starts.append(machine.first_start)
        recorded = range(WARM_UP, WARM_UP + self.steps)
        return machine, [starts[s + 1] - starts[s] for s in recorded]

    def step(self, m, number):
        begin = m.now
        if self.loader:
            m.now += m.length(self.loader, 5, "host")
            m.span("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", begin)
        m.work(20000)
        if self.batch:
            copy = m.now
            m.operator += 1
            m.work(5000)
            m.upload(self.batch_ns, self.batch == "pageable")
            m.span("cpu_op", "aten::copy_", copy)
        self.forward(m)
        m.work(30000)
        m.thread = ENGINE
        m.now = m.clock[MAIN] + 10000
        self.backward(m)
        m.thread = MAIN
        m.now = m.clock[ENGINE] + 15000
        m.work(5000)
        if self.exchange:
            m.await_stream(COMPUTE, COMM)
        self.update(m)
        if self.reads == "end":
            m.read()
        if self.waits_at_end:
            m.wait("cudaDeviceSynchronize", max(m.free.values()))
        m.work(10000)
        if self.marks:
            m.span("user_annotation", f"ProfilerStep#{number}", begin)

    def layer(self, m, name, host, kernels, stream=COMPUTE):
        if self.graphs and len(kernels) > 3:
            m.work(5000)
            m.launch_graph(kernels)
            return
        begin = m.now
        m.operator += 1
        m.work(host * 0.6)
        for kernel, ns in kernels:
            m.launch(kernel, ns, stream)
            m.work(host * 0.4 / len(kernels))
        m.span("cpu_op", name, begin)

    def forward(self, m):
        event, middle = 0, len(self.layers) // 2
        for i, (name, host, kernels) in enumerate(self.layers):
            if self.second_stream and i % 7 == 3:
                m.await_stream(SIDE, COMPUTE)
                self.layer(m, f"aten::{name}", host, kernels, SIDE)
                m.await_stream(COMPUTE, SIDE)
            else:
                self.layer(m, f"aten::{name}", host, kernels)
            m.work(host * 0.5)
            if i == middle and self.reads == "forward":
                m.read()
            if i == len(self.layers) // 3 and self.waits == "event":
                event = m.free[COMPUTE]
                m.short_call("cudaEventRecord")
            if i == middle and self.waits == "event":
                m.wait("cudaEventSynchronize", event)
            if i == middle and self.waits == "stream":
                m.wait("cudaStreamSynchronize", m.free[COMPUTE])

    def backward(self, m):
        for i, (name, host, kernels) in enumerate(reversed(self.layers)):
            begin = m.now
            m.work(3000)
            self.layer(m, f"aten::{name}_backward", host, [(k + "_backward", 2 * ns) for k, ns in kernels])
            m.work(2000)
            m.span("cpu_op", f"autograd::engine::evaluate_function: {name.capitalize()}Backward0", begin)
            if self.exchange and i % 5 == 4:
                begin = m.now
                m.operator += 1
                m.await_stream(COMM, COMPUTE)
                m.launch("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)", self.exchange, COMM, "comm",
                         24)
                m.span("cpu_op", "nccl:all_reduce", begin)
            m.work(host * 0.3)

    def update(self, m):
        begin = m.now
        m.work(50000)
        for _ in range(len(self.layers) if self.many_updates else 4):
            self.layer(m, "aten::add_", 5000, [("update", 4000 if self.many_updates else 30000)])
        m.span("user_annotation", "Optimizer.step#SGD.step", begin)
