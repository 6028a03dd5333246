"""Traces as a PyTorch profiler writes them, made for what a page has to bear: size, and hostile names."""

import random

HOSTILE = "</script><img src=x onerror=\"window.hacked=1\"><svg onload='window.hacked=1'>"


# As many as the page draws before it joins short ones.
HALF_A_MILLION = dict(steps=71, kernels=1000)


def big_trace(steps, kernels, seed=1):
    """Steps of kernels, each with an operator and a launch of its own; every length and every pause is drawn
    anew, with a standard deviation of 10 %."""
    draw = random.Random(seed)
    ops = [(f"aten::op{i % 37}", f"void kernel_{i % 61}<float, {i % 7}>(float*, int)", draw.uniform(3, 30),
            draw.uniform(3, 60)) for i in range(kernels)]
    events, host, gpu, last = [], 0.0, 0.0, 0

    def jitter(us):
        return us * draw.lognormvariate(0, 0.1)

    def add(cat, name, pid, tid, begin, length, args):
        events.append({"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": round(begin, 3),
                       "dur": round(length, 3), "args": args})

    for step in range(steps):
        begin = host
        for op, kernel, on_host, on_gpu in ops:
            last += 1
            ids = {"correlation": last, "External id": last}
            call = jitter(on_host / 3)
            length = call + jitter(on_host / 3) + 2
            add("cpu_op", op, 1, 1, host, length, ids)
            add("cuda_runtime", "cudaLaunchKernel", 1, 1, host + call, length - call - 1, ids)
            gpu = max(gpu, host + call + 4) + jitter(1.2)
            on_gpu = jitter(on_gpu)
            add("kernel", kernel, 0, 7, gpu, on_gpu, {"device": 0, "stream": 7, **ids})
            gpu += on_gpu
            host += length + jitter(on_host / 3)
        last += 1
        add("cuda_runtime", "cudaDeviceSynchronize", 1, 1, host, max(1, gpu + 2 - host), {"correlation": last})
        host = max(host + 1, gpu + 2) + jitter(20)
        add("user_annotation", f"ProfilerStep#{step}", 1, 1, begin, host - begin - 5, {})
    return {"traceEvents": events, "deviceProperties": [{"id": 0, "name": "NVIDIA A100-SXM4-40GB"}]}


def hostile_trace():
    """Three steps of a program whose names are all markup."""
    events = [{"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": HOSTILE}}]
    for step in range(3):
        at = 1000 * step
        events.append({"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "pid": 1,
                       "tid": 1, "ts": at, "dur": 900})
        for i in range(4):
            call = at + 10 + 100 * i
            ids = {"correlation": 10 * step + i + 1, "External id": 10 * step + i + 1}
            events += [
                {"ph": "X", "cat": "cpu_op", "name": "aten::" + HOSTILE, "pid": 1, "tid": 1,
                 "ts": call, "dur": 50, "args": ids},
                {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1,
                 "ts": call + 5, "dur": 10, "args": ids},
                {"ph": "X", "cat": "kernel", "name": "void " + HOSTILE, "pid": 0, "tid": 7,
                 "ts": call + 20, "dur": 150 if i == 3 else 70,
                 "args": {"device": 0, "stream": 7, **ids}}]
    return {"traceEvents": events, "deviceProperties": [{"id": 0, "name": HOSTILE}]}


def memory_trace():
    """Three steps of 10 ms. In each: 8 GB at once, and within the next microsecond 6 GB of it go again; after
    half of the step the rest goes."""
    events, giga, held = [], 10**9, 0
    for step in range(3):
        at = 10_000 * step
        ids = {"correlation": step + 1, "External id": step + 1}
        events += [
            {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "pid": 1, "tid": 1, "ts": at, "dur": 9_900},
            {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": at + 10, "dur": 5,
             "args": ids},
            {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": at + 20, "dur": 9_000,
             "args": {"device": 0, "stream": 7, **ids}}]
        for after, change in ((1_000, 8), (1_000.5, -6), (5_000, -2)):
            held += change * giga
            events.append({"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1,
                           "ts": at + after, "args": {"Total Allocated": held, "Bytes": change * giga, "Device Type": 1,
                                                      "Device Id": 0, "Total Reserved": 9 * giga, "Addr": 1}})
    return {"traceEvents": events, "deviceProperties": [{"id": 0, "name": "NVIDIA A100-SXM4-40GB"}]}
