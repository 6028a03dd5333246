#!/usr/bin/env python3
"""Everything that only a real GPU can show, in under ten minutes.

  run.py --build build/release --out FOLDER [--minutes 9.5] [--python PYTHON] [--rehearse]

Asks the probe, measures what recording costs, records a corpus with the step time measured without
a recorder beside it, ends programs in every way, and holds the results against the criteria. Writes
report.json, report.md, recordings.tar and raw.tar (CUPTI's buffers) to FOLDER. Exit code: 0 all
criteria held, 1 some did not, 77 there is no GPU here.

--rehearse runs the same script without a GPU, on the fake driver of the tests, to see that it works;
its report says so, and its numbers mean nothing.
"""
import argparse
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tarfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
# The criteria, with the sentence of the report.
LIMITS = {"resnet50": 1.01, "mlp": 1.10}
LIMIT_WORDS = {"resnet50": "GPU-bound", "mlp": "launch-bound"}
MODES = {  # how to record for the overhead matrix; None: not at all
    "off": None,
    "cuda": ["-t", "cuda"],
    "+layers": ["-t", "cuda,torch"],
    "+nvtx": ["-t", "cuda,torch,nvtx,nccl"],
    "torch.profiler": None,
}
CORPUS = {
    "mlp": ["base", "foreach", "fused", "amp", "graph", "half_batch"],
    "resnet50": ["base", "amp", "channels_last", "amp+channels_last", "fused", "pageable", "pinned"],
    "transformer": ["base", "amp", "sdpa", "fused", "amp+fused", "foreach"],
}
WARMUP, STEPS, CORPUS_STEPS, REPETITIONS = 12, 40, 4, 3


class Suite:
    def __init__(self, a):
        self.a = a
        self.build, self.out = pathlib.Path(a.build).resolve(), pathlib.Path(a.out).resolve()
        self.daydream = str(self.build / "daydream")
        self.work = self.out / "work"
        shutil.rmtree(self.work, ignore_errors=True)
        self.work.mkdir(parents=True)
        self.end = time.time() + a.minutes * 60
        self.report = {"schema": "daydream.gpu/1", "rehearsal": a.rehearse, "problems": []}
        self.checks = []
        self.environment = dict(os.environ)
        if a.rehearse:
            fakes = str(self.build / "tests/tracer/fake_cuda")
            self.environment["LD_LIBRARY_PATH"] = fakes
            # A PyTorch for CUDA brings the real one, which cannot work with a fake driver.
            self.environment["DAYDREAM_CUPTI"] = fakes + "/libcupti.so.13"

    # ---- running things
    def left(self):
        return self.end - time.time()

    def run(self, command, limit=120, environment=None, cwd=None):
        """(exit code or -signal, stdout, stderr). None: it and its children were killed after
        `limit` seconds."""
        process = self.start(command, environment, cwd)
        try:
            out, err = process.communicate(timeout=min(limit, max(10, self.left() + 30)))
            return process.returncode, out, err
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            return None, out, err + "\nkilled after %s s" % limit

    def start(self, command, environment=None, cwd=None):
        return subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**self.environment, **(environment or {})},
            cwd=cwd or self.work,
            errors="replace",
            start_new_session=True,
        )

    def bench(self, *words):
        more = ["--rehearse"] if self.a.rehearse else []
        return [self.a.python, str(HERE / "bench.py"), *map(str, words), *more]

    def trace(self, name, flags, command):
        return [self.daydream, "trace", "-q", "-f", "-o", name, *map(str, flags), "--", *command]

    def info(self, path):
        code, out, err = self.run([self.daydream, "info", str(path), "--format", "json"])
        if code != 0:
            self.problem("info %s: %s" % (path, err.strip()))
            return None
        return json.loads(out)

    def problem(self, text):
        self.report["problems"].append(text[:2000])
        print("problem:", text[:300], flush=True)

    def check(self, name, value, held):
        self.checks.append({"check": name, "value": value, "held": bool(held)})
        print("%s: %s = %s" % ("held" if held else "NOT HELD", name, value), flush=True)

    def one_json(self, result, what):
        code, out, err = result
        lines = [line for line in out.splitlines() if line.startswith('{"model"')]
        if code != 0 or not lines:
            self.problem("%s: exit %s\n%s" % (what, code, err[-1500:]))
            return None
        return json.loads(lines[-1])

    # ---- the parts
    def machine(self):
        code, out, _ = self.run([self.daydream, "doctor", "--format", "json"])
        self.report["doctor"] = json.loads(out) if out.startswith("{") else out
        query = "name,driver_version,clocks.sm,clocks.mem,power.limit,memory.total"
        if shutil.which("nvidia-smi"):
            self.report["nvidia_smi"] = self.run(
                ["nvidia-smi", "--query-gpu=" + query, "--format=csv"]
            )[1]
        self.report["daydream"] = self.run([self.daydream, "--version", "-v"])[1]
        return code == 0

    def probe(self):
        program = self.build / "tests/gpu/gpu_probe"
        if not program.exists():
            return self.problem("the probe is not built (no CUDA compiler or no CUPTI)")
        rows = []
        for part in ("facts", "cost", "exit"):
            code, out, err = self.run([str(program), part], limit=60)
            for line in out.splitlines():
                try:
                    rows.append({"part": part, **json.loads(line)})
                except ValueError:
                    self.problem("probe %s printed: %s" % (part, line))
            if code != 0:
                self.problem("probe %s: exit %s %s" % (part, code, err))
        self.report["probe"] = rows
        find = lambda name: next((r for r in rows if r["probe"] == name), {})
        waits, kernels = find("waits"), find("kernels")
        if waits:
            self.check(
                "waits matched by sync id",
                "%d of %d" % (waits["wait_event_matched_by_syncId"], waits["wait_event"]),
                waits["wait_event_matched_by_syncId"] == waits["wait_event"] > 0,
            )
            self.check(
                "kernel_without_api", kernels["kernel_without_api"],
                kernels["kernel_without_api"] == 0,
            )

    def overhead(self):
        """Step times by model and mode, all modes in turn and that REPETITIONS times."""
        times = {model: {mode: [] for mode in MODES} for model in LIMITS}
        for repetition in range(REPETITIONS):
            for model in LIMITS:
                for mode, flags in MODES.items():
                    if mode == "torch.profiler" and repetition > 0:
                        continue  # for comparison only
                    if self.left() < (150 if repetition < 2 else 300):
                        return self.problem("no time left for the rest of the overhead matrix")
                    result = self.one_overhead(model, mode, flags, repetition)
                    if result:
                        times[model][mode].append(result["step_ms"])
        self.report["overhead"] = times
        for model, limit in LIMITS.items():
            off = times[model]["off"]
            for mode in ("cuda", "+layers", "+nvtx"):
                if not off or not times[model][mode]:
                    continue
                ratio = statistics.median(times[model][mode]) / statistics.median(off)
                # How much runs of one and the same program differ: no ratio is known better.
                noise = (max(off) - min(off)) / statistics.median(off)
                self.check(
                    "%s (%s), %s: recorded / not recorded" % (model, LIMIT_WORDS[model], mode),
                    "%.4f, runs without a recorder differ by %.4f" % (ratio, noise),
                    ratio <= limit,
                )

    def one_overhead(self, model, mode, flags, repetition):
        profile = ["--profile", "profile.json"] if mode == "torch.profiler" else []
        command = self.bench(model, "base", "--steps", STEPS, "--warmup", WARMUP, *profile)
        if flags is not None:
            # All measured steps lie in the window, and none of the labelled ones.
            window = ["--warmup", WARMUP, "--steps", STEPS + 2]
            command = self.trace("overhead.ddtrace", window + flags, command)
        what = "%s %s #%d" % (model, mode, repetition)
        return self.one_json(self.run(command), what)

    def corpus(self):
        rows = []
        for model, variants in CORPUS.items():
            for variant in variants:
                if self.a.rehearse and variant not in ("base", "foreach", "half_batch"):
                    continue  # they need a GPU
                if self.left() < 75:
                    self.problem("no time left for %s %s and what follows" % (model, variant))
                    self.report["corpus"] = rows
                    return
                row = self.one_recording(model, variant)
                if row:
                    rows.append(row)
        self.report["corpus"] = rows

    def one_recording(self, model, variant):
        """The same program twice: its step time without a recorder, and recorded."""
        name = "%s.%s" % (model, variant)
        plain = self.one_json(
            self.run(self.bench(model, variant, "--steps", STEPS, "--warmup", WARMUP)), name
        )
        if plain is None:
            return None
        command = self.bench(model, variant, "--steps", CORPUS_STEPS + 4, "--warmup", WARMUP)
        flags = ["--warmup", WARMUP, "--steps", CORPUS_STEPS]
        raw = {"DAYDREAM_DUMP_RAW": "1"} if variant in ("base", "graph") else {}
        recorded = self.one_json(
            self.run(self.trace(name, flags, command), environment=raw), name + " recorded"
        )
        row = {"name": name, "plain": plain, "recorded": recorded}
        path = self.work / (name + ".ddtrace")
        if recorded is None or not path.exists():
            self.problem(name + ": no recording")
            return row
        info = self.info(path)
        if info is None:
            return row
        self.judge(name, info)
        row["info"] = info
        return row

    def judge(self, name, info):
        graph, replay = info.get("graph", {}), info.get("replay")
        lost = {c["what"]: c["count"] for c in info["skipped"] if c["loss"]}
        self.check(name + ": lost", lost, not lost)
        if replay:
            error = abs(replay["error_pct"])
            self.check(name + ": replay error %", error, error <= 1)
        if graph:
            orphans = graph["gpu_tasks"] - graph["launched"]
            self.check(name + ": GPU work without a launch", orphans, orphans == 0)
            share = graph["mapped_kernel_time_ns"] / max(1, graph["kernel_time_ns"])
            if "graph" not in name:
                self.check(name + ": layers of kernel time %", round(share * 100, 2), share >= 0.98)

    def robustness(self):
        for how in (signal.SIGTERM, signal.SIGINT, signal.SIGKILL):
            if self.left() < 30:
                return self.problem("no time left for " + how.name)
            self.one_end(how.name, how)
        self.after_stop()
        self.own_overhead()
        self.two_ranks()
        self.own_profiler()
        self.cuda_programs()

    def one_end(self, name, how):
        """Ends an endless program; the recording must be there and readable, and the exit code
        that of a program that this signal ended."""
        path = self.work / ("end-%s.ddtrace" % name)
        command = self.trace(path, ["-c", "none"], self.bench("mlp", "--endless"))
        process = self.start(command)
        # Nobody is there to end a program that hangs.
        watch = threading.Timer(120, os.killpg, (process.pid, signal.SIGKILL))
        watch.start()
        for _ in range(30):
            if not process.stdout.readline():
                break
        time.sleep(0.5)
        target = process.pid
        if how == signal.SIGKILL:  # the program itself, as the kernel does when memory is out
            children = pathlib.Path("/proc/%d/task/%d/children" % (target, target))
            target = int(children.read_text().split()[0])
        os.kill(target, how)
        process.communicate()
        watch.cancel()
        info = self.info(path) if path.exists() else None
        kernels = info["graph"]["gpu_tasks"] if info and "graph" in info else 0
        self.check(name + ": GPU tasks in the recording", kernels, kernels > 0)
        self.check(name + ": exit code", process.returncode, process.returncode == 128 + how)

    def after_stop(self):
        """A program that keeps the GPU busy is ended after the window, whose work is all there."""
        path = self.work / "after-stop.ddtrace"
        window = ["--warmup", WARMUP, "--steps", 4, "--after", "stop"]
        command = ["sh", "-c", 'exec "$@" >/dev/null', "sh", *self.bench("resnet50", "--endless")]
        code, _, err = self.run(self.trace(path, window, command), limit=120)
        self.check("--after stop: exit code", code, code == 128 + signal.SIGTERM)
        info = self.info(path) if path.exists() else None
        if info is None:
            return self.problem("--after stop: no recording\n" + err[-1500:])
        self.judge("--after stop", info)
        steps = info["steps"]["measured"]
        self.check("--after stop: steps", steps, steps >= 3)

    def own_overhead(self):
        """What a recording says it cost, against the matrix of recorded and plain runs."""
        times = self.report.get("overhead", {}).get("mlp", {})
        if not times.get("off") or not times.get("+nvtx"):
            return self.problem("own overhead: there is no matrix to hold it against")
        off, on = times["off"], times["+nvtx"]
        ratio = statistics.median(on) / statistics.median(off)
        noise = (max(off) - min(off) + max(on) - min(on)) / statistics.median(off)
        # GPU work is recorded for two seconds after the window: 5 s of steps leave some without.
        steps = WARMUP + STEPS + int(5000 / statistics.median(off))
        command = self.bench("mlp", "base", "--steps", steps, "--warmup", WARMUP)
        self.run(self.trace("cost", ["--warmup", WARMUP, "--steps", STEPS], command))
        info = self.info(self.work / "cost.ddtrace")
        said = info and info["recording"].get("overhead_pct")
        if said is None:
            return self.check("own overhead of a recording", "not measurable", False)
        error = info["recording"]["overhead_error_pct"]
        self.check(
            "own overhead of a recording %",
            "%.2f ± %.2f, runs say %.2f ± %.2f" % (said, error, (ratio - 1) * 100, noise * 100),
            abs(said - (ratio - 1) * 100) <= error + noise * 100,
        )

    def two_ranks(self):
        bench = self.bench("mlp", "base", "--steps", 12, "--warmup", WARMUP)
        launcher = [
            self.a.python, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2",
        ]
        command = launcher + bench[1:]
        if self.a.rehearse:  # torchrun of Debian's PyTorch does not work with its Python
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                port = free.getsockname()[1]
            ranks = "for RANK in 0 1; do export RANK; %s & done; wait" % shlex.join(bench)
            shared = "export WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=%d; " % port
            command = ["sh", "-c", shared + ranks]
        code, out, err = self.run(
            self.trace("ranks", ["--warmup", WARMUP, "--steps", 4], command)
        )
        files = sorted(p.name for p in self.work.glob("ranks*.ddtrace"))
        self.check(
            "two ranks: files", files, files == ["ranks.rank0.ddtrace", "ranks.rank1.ddtrace"]
        )
        if code != 0:
            self.problem("two ranks: exit %s\n%s" % (code, err[-1500:]))
        folder = self.work / "two"
        folder.mkdir()
        for name in files:
            shutil.copy(self.work / name, folder)
        info = self.info(folder)
        ranks = [rank["rank"] for rank in info["ranks"]] if info else []
        self.check("two ranks: as one trace", ranks, ranks == [0, 1])

    def own_profiler(self):
        command = self.bench("mlp", "base", "--steps", 12, "--profile", "own.json")
        code, _, err = self.run(self.trace("own", ["--warmup", WARMUP, "--steps", 4], command))
        there = (self.work / "own.ddtrace").exists()
        self.check("a script with torch.profiler: exit code", code, code == 0 and there)
        self.report["own_profiler_stderr"] = err[-2000:]

    def cuda_programs(self):
        for name in ("mlp_trainer", "spiking_network", "stream_pipeline"):
            program = self.build / "examples/cuda" / name
            if self.a.rehearse or not program.exists():
                continue
            code, out, err = self.run([str(program)], limit=60)
            self.check(name + ": its own check", out.strip()[-200:], code == 0)
            code, out, err = self.run(self.trace(name, [], [str(program)]), limit=60)
            self.check(name + ": recorded, its own check", out.strip()[-200:], code == 0)
            info = self.info(self.work / (name + ".ddtrace"))
            if info:
                self.report[name] = info
                self.check(name + ": steps", info["steps"]["measured"],
                           info["steps"]["measured"] >= 3)

    # ---- what is left behind
    def write(self):
        self.report["checks"] = self.checks
        self.report["seconds"] = round(self.a.minutes * 60 - self.left(), 1)
        (self.out / "report.json").write_text(json.dumps(self.report, indent=1) + "\n")
        (self.out / "report.md").write_text(self.markdown())
        self.pack("recordings.tar", self.work.glob("*.ddtrace"))
        self.pack("raw.tar", self.work.glob("*.session/*.cuptibuf"))

    def pack(self, name, paths):
        """Under 15 MB, so that it can be kept; what does not fit is named in the report."""
        with tarfile.open(self.out / name, "w") as tar:
            room = 15_000_000
            for path in sorted(paths):
                size = path.stat().st_size + 1024
                if size > room:
                    self.problem("left out of %s: %s (%d bytes)" % (name, path.name, size))
                    continue
                room -= size
                tar.add(path, path.name)

    def markdown(self):
        r = self.report
        lines = ["# Report of tests/gpu/run.py", ""]
        if r["rehearsal"]:
            lines += ["**A rehearsal without a GPU. The numbers mean nothing.**", ""]
        held = sum(c["held"] for c in self.checks)
        lines += ["%d of %d checks held, in %s s." % (held, len(self.checks), r["seconds"]), ""]
        lines += ["```", r.get("nvidia_smi", "no nvidia-smi").strip(), r["daydream"].strip(), "```"]
        lines += ["", "| check | value | |", "| --- | --- | --- |"]
        for c in self.checks:
            value = re.sub(r"[|\n]", " ", str(c["value"]))
            lines.append("| %s | %s | %s |" % (c["check"], value, "" if c["held"] else "**no**"))
        lines += ["", "## Step time, ms", "", "| model | " + " | ".join(MODES) + " |"]
        lines.append("| --- |" + " --- |" * len(MODES))
        for model, modes in r.get("overhead", {}).items():
            cells = [", ".join("%.3f" % ms for ms in modes[m]) or "-" for m in MODES]
            lines.append("| %s | %s |" % (model, " | ".join(cells)))
        lines += ["", "## Corpus", "", "| recording | step, not recorded, ms |", "| --- | --- |"]
        for row in r.get("corpus", []):
            lines.append("| %s | %.3f |" % (row["name"], row["plain"]["step_ms"]))
        lines += ["", "## Probe", "", "```"]
        lines += [json.dumps(row) for row in r.get("probe", [])] + ["```", "", "## Problems", ""]
        lines += ["* " + p.replace("\n", " ") for p in r["problems"]] or ["none"]
        return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--out", default="gpu-report")
    parser.add_argument("--minutes", type=float, default=9.5)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--rehearse", action="store_true")
    a = parser.parse_args()
    suite = Suite(a)
    if not suite.machine():
        print("skipped: this machine cannot record (daydream doctor says why)")
        return 77
    try:
        # Most telling first: a run that is cut off still helps.
        for part in (suite.probe, suite.overhead, suite.corpus, suite.robustness):
            try:
                part()
            except Exception as error:  # the other parts may still work
                suite.problem("%s: %r" % (part.__name__, error))
    finally:
        suite.write()
    bad = [c for c in suite.checks if not c["held"]]
    print("%d checks, %d not held, report in %s" % (len(suite.checks), len(bad), suite.out))
    return 1 if bad else 0


sys.exit(main())
