"""real_replay_test.py PROGRAM TRACES: real recordings with kernels of half their length, and of none, as a second
replay has them that shares nothing with daydream.

It reads what the PyTorch profiler wrote, and knows no rule by a name of PyTorch: host calls follow each other as they
did, whatever thread they are on. A call waits for the GPU work that was over just before it returned, a launch into a
full queue for the operation 1021 places earlier, work of a stream for the work before it, for its launch, and for
work of another stream that was over about when it began. What is within microseconds in the recording is taken for
cause and effect.
"""
import bisect
import gzip
import json
import os
import statistics
import subprocess
import sys

TOLERANCE = 0.05
PLACES = 1022  # in the launch queue, as docs/how-it-works.md has it from a V100 and two H100
JUST = 40.0    # us between what was waited for and the return of the call
CLOSE = 8.0    # us between pieces of work of which the second waits for nothing else
NEAR = 80.0    # us from the end of work to what waits for it on another stream, for the event or for room on the
               # GPU; chosen after a look at what begins late in the recommender: 14 to 65 us
KERNELS = "speedup(kind:kernel & !collective:.,by={0})"
TRACES = [
    "gpus/resnet50-bs32.a100-ddp2",
    "gpus/resnet50-bs32.v100-sxm2",
    "loader/resnet50-v100.workers0.a",
    "loader/resnet50-v100.workers0.b",
    "loader/resnet50-v100.workers4.a",
    "loader/resnet50-v100.workers4.b",
    "training/recsys-a100-rank3of8",
    "training/sharded-v100-rank1of2",
]
GPU = {"kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset"}


class Call:
    def __init__(self, event):
        self.start, self.end, self.name = event["ts"], event["ts"] + event["dur"], event["name"]
        self.operations, self.awaits, self.own = [], None, event["dur"]


class Operation:
    def __init__(self, event, call):
        self.start, self.end, self.call = event["ts"], event["ts"] + event["dur"], call
        self.stream = (event["pid"], event["tid"])
        self.kernel = str(event["cat"]).lower() == "kernel" and "nccl" not in event["name"].lower()
        copies = "memcpy" in str(event["cat"]).lower()
        self.takes_place = not copies or "Device -> Device" in event["name"]
        self.awaits = None


class Recording:
    def __init__(self, path):
        with gzip.open(path) as file:
            read = json.load(file)
        events = [e for e in (read if isinstance(read, list) else read["traceEvents"])
                  if e.get("ph") == "X" and "dur" in e]
        calls = {e["args"]["correlation"]: Call(e) for e in events
                 if "runtime" in str(e.get("cat")).lower() and "correlation" in e.get("args", {})}
        self.operations = sorted((Operation(e, calls.get(e["args"].get("correlation"))) for e in events
                                  if str(e.get("cat")).lower() in GPU), key=lambda o: o.start)
        for operation in self.operations:
            if operation.call is not None:
                operation.call.operations.append(operation)
        self.streams = {}
        for operation in self.operations:
            self.streams.setdefault(operation.stream, []).append(operation)
        waits = ("Synchronize", "Memcpy")
        self.calls = sorted((c for c in calls.values() if c.operations or any(w in c.name for w in waits)),
                            key=lambda c: c.start)
        marks = sorted({e["ts"] for e in events if e["name"].startswith("ProfilerStep")
                        and "gpu" not in str(e["cat"]).lower()})
        launched = [o for o in self.operations if o.call is not None]
        self.first = [min((o for o in launched if o.call.start >= mark), key=lambda o: o.call.start, default=None)
                      for mark in marks]  # GPU work of each step
        host = [e for e in events if str(e.get("cat")).lower() in ("cpu_op", "operator", "user_annotation")]
        self.begin = min(e["ts"] for e in host)
        self.end = max(e["ts"] + e["dur"] for e in host)
        self.find_waits()
        self.find_full_queues()
        self.find_other_streams()

    def find_waits(self):
        by_end = sorted(self.operations, key=lambda o: o.end)
        ends = [o.end for o in by_end]
        for call in self.calls:
            if call.operations:
                # From pageable memory a call returns when the last piece is on its way.
                found = [o for o in call.operations if not o.kernel and o.start < call.end
                         and abs(call.end - o.end) < 2 * JUST]
            elif "Synchronize" in call.name:
                i, found = bisect.bisect_right(ends, call.end) - 1, []
                while not found and i >= 0 and ends[i] > max(call.start, call.end - JUST):
                    if by_end[i].call is None or by_end[i].call.start <= call.start:
                        found.append(by_end[i])
                    i -= 1
            else:
                continue
            if found:
                call.awaits, call.own = (found[-1], "end", call.end - found[-1].end), min(call.own, 10.0)

    def find_full_queues(self):
        blocked, free = [], {}
        for stream in self.streams.values():
            placed = [o for o in stream if o.takes_place]
            for i, operation in enumerate(placed):
                call, release = operation.call, placed[i - PLACES + 1] if i >= PLACES - 1 else None
                if call is None or call.awaits is not None:
                    continue
                if release is None or release.start <= call.start:
                    free.setdefault(call.name, []).append(call.own)
                if release is not None and release.start <= call.end:
                    lag = call.end - release.start
                    if release.start <= call.start:
                        lag = min(lag, 5.0)
                    else:
                        blocked.append(call)
                    call.awaits = (release, "start", lag)
        for call in blocked:
            call.own = min(call.own, statistics.median(free.get(call.name, [5.0])))

    def find_other_streams(self):
        known = [o.start - o.call.start for o in self.operations if o.call is not None]
        self.arrives = sorted(known)[len(known) // 20]
        by_end = sorted(self.operations, key=lambda o: o.end)
        ends = [o.end for o in by_end]
        for stream in self.streams.values():
            for before, operation in zip([None] + stream, stream):
                idle_from = self.begin if before is None else before.end
                operation.gap = max(0.0, operation.start - idle_from) if before is not None else 0.0
                operation.delay, waited = self.arrives, operation.gap
                if operation.call is not None and operation.call.start + self.arrives >= idle_from:
                    operation.delay, operation.gap = operation.start - operation.call.start, min(operation.gap, 1.0)
                    waited = operation.delay - self.arrives
                if waited <= CLOSE:
                    continue
                first, last = (bisect.bisect_left(ends, operation.start + side * NEAR) for side in (-1, 1))
                others = [o for o in by_end[first:last] if o.stream != operation.stream and o.start < operation.start]
                if others:
                    other = min(others, key=lambda o: abs(operation.start - o.end))
                    operation.awaits = (other, operation.start - other.end)
                    operation.delay, operation.gap = self.arrives, min(operation.gap, 1.0)

    def play(self, factor):
        """When the GPU begins each step with kernels of `factor` times their length, in ms."""
        start, end, last = {}, {}, {}
        queue = {stream: list(reversed(operations)) for stream, operations in self.streams.items()}
        began = {}  # calls

        def run(operation):
            """With all before it on its stream, which were launched."""
            pending = queue[operation.stream]
            while id(operation) not in end:
                now = pending[-1]
                if now.awaits is not None and id(now.awaits[0]) not in end:
                    run(now.awaits[0])
                launched = began[id(now.call)] + now.delay if now.call is not None and id(now.call) in began else None
                if launched is None:
                    launched = now.start if now.call is None and factor == 1 else 0.0
                    if now.call is not None:
                        launched = latest[0] + now.delay
                ready = max(launched, last.get(now.stream, 0.0) + now.gap)
                if now.awaits is not None:
                    ready = max(ready, end[id(now.awaits[0])] + now.awaits[1])
                length = (now.end - now.start) * (factor if now.kernel else 1)
                start[id(now)], end[id(now)] = ready, ready + length
                last[now.stream] = ready + length
                pending.pop()

        latest = [self.begin]
        host, recorded = self.begin, self.begin
        for call in self.calls:
            host += max(call.start - recorded, 0.0) if call.start >= recorded else call.start - recorded
            began[id(call)] = latest[0] = host
            host += call.own
            if call.awaits is not None:
                what, side, lag = call.awaits
                if id(what) not in end:
                    run(what)
                host = max(host, (end if side == "end" else start)[id(what)] + lag)
            recorded = call.end
        for operation in self.operations:
            if id(operation) not in end:
                run(operation)
        return [start[id(o)] / 1000 for o in self.first if o is not None]


def main():
    daydream, folder = sys.argv[1], sys.argv[2]
    if not os.path.isdir(folder):
        print(f"no {folder}: not run")
        return 77
    failures, asked_all, compared = [], 0, 0
    for trace in TRACES:
        path = os.path.join(folder, trace + ".json.gz")
        recording = Recording(path)
        line = [trace]
        for factor, by in ((1, 1), (0.5, 2), (0.001, 1000)):
            asked = ["--opt", KERNELS.format(by)] if by > 1 else []
            done = subprocess.run([daydream, "whatif", path, *asked, "--no-alone", "--format", "json"],
                                  capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
            steps = json.loads(done.stdout)["scenarios"][-1]["steps_ms"][:-1]  # nobody sees where the last one ends
            begins = recording.play(factor)[-len(steps) - 1:]
            asked_all += 1
            if len(begins) <= len(steps):
                failures.append(f"{trace}, kernels x{factor:g}: {len(begins)} steps begin of {len(steps)} that end")
                continue
            compared += 1
            predicted, replayed = sum(steps) / len(steps), (begins[-1] - begins[0]) / len(steps)
            error = predicted / replayed - 1
            line.append(f"kernels x{factor:g} {predicted:.2f} for {replayed:.2f} ({error:+.1%})")
            if abs(error) > TOLERANCE:
                failures.append(f"{trace}, kernels x{factor:g}: {error:+.1%}")
        print("; ".join(line), flush=True)
    print("\n".join(failures) or f"{compared} of {asked_all} within {TOLERANCE:.0%}")
    return bool(failures)


if __name__ == "__main__":
    sys.setrecursionlimit(100_000)
    sys.exit(main())
