"""The real recorder under PyTorch programs, on the fake driver: steps and layers of the recording.

The only place where both sides of the recorder meet the reader: that a mark is sent says nothing
about whether the recorder's window was open for it.
"""

import csv
import json
import os
import subprocess
import sys
import tempfile
import unittest

import harness

PROGRAM = """
import ctypes, sys, torch
driver = ctypes.CDLL("libcuda.so.1")
driver.cuLaunchKernel.argtypes = [ctypes.c_void_p] + [ctypes.c_uint] * 7 + [ctypes.c_void_p] * 3
driver.cuInit(0)
functions = {}
def launch(name):
    if name not in functions:
        functions[name] = ctypes.c_void_p()
        driver.cuModuleGetFunction(ctypes.byref(functions[name]), None, name)
    driver.cuLaunchKernel(functions[name], 1, 1, 1, 64, 1, 1, 0, None, None, None)
class Double(torch.autograd.Function):
    @staticmethod
    def forward(_, x): launch(b"double"); return x * 2
    @staticmethod
    def backward(_, grad): launch(b"double_backward"); return grad * 2
class Block(torch.nn.Module):
    def __init__(self): super().__init__(); self.linear = torch.nn.Linear(4, 4)
    def forward(self, x): return Double.apply(self.linear(x))
class SGD(torch.optim.SGD):
    def step(self, closure=None): launch(b"sgd"); return super().step(closure)
model = torch.nn.Sequential(Block(), Block(), Block())
if sys.argv[1] == "train":
    optimizer = SGD(model.parameters(), lr=0.1)
for _ in range(30):
    if sys.argv[1] == "train":
        optimizer.zero_grad(); model(torch.ones(2, 4)).sum().backward(); optimizer.step()
    else:
        with torch.no_grad(): model(torch.ones(2, 4))
"""
KERNELS = {"train": 7, "infer": 3}  # per step


def run(*words, **variables):
    env = dict(os.environ, **variables)
    done = subprocess.run([os.environ["DAYDREAM"], *words], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
    return done


def daydream(*words):
    return run(*words).stdout


def cupti_of_pytorch():
    """What the wheels for CUDA bring; "" where there is none, as in Debian's package."""
    code = "import torch; print([l.split()[-1] for l in open('/proc/self/maps') if 'libcupti' in l])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    found = [path for path in done.stdout.split("'") if "libcupti" in path]
    return found[0] if found else ""


class RecordingTest(unittest.TestCase):
    def check(self, kind, warmup):
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "program.py")
            recording = os.path.join(folder, "run.ddtrace")
            with open(program, "w") as file:
                file.write(PROGRAM)
            daydream("trace", "-o", recording, "--warmup", str(warmup), "--steps", "5",
                     "--", sys.executable, program, kind)  # fmt: skip
            info = json.loads(daydream("info", "--format", "json", recording))
            # Not the summary: it refuses where a busy machine made the steps too unequal.
            table = daydream("export", recording, "--to", "csv", "-o", "-")
            tasks = list(csv.DictReader(table.splitlines()))
        steps = info["steps"]["all"]
        self.assertEqual(info["steps"]["method"], "marks of the program")
        # Layers are marked in the first steps; on a busy machine one can take so long that it and
        # what came before it are left out for that instead.
        marked = 3 if warmup == 10 else 1
        self.assertEqual(len(steps), marked + 5, steps)
        for step in steps[:marked]:
            self.assertIn(step["use"], ("labelled", "warm-up"), steps)
        self.assertFalse(any(s["use"] == "labelled" for s in steps[marked:]), steps)
        graph = info["graph"]
        self.assertEqual(graph["gpu_tasks"], KERNELS[kind] * len(steps))
        self.assertEqual(graph["launched"], graph["gpu_tasks"])
        # Issued inside of modules or of the optimizer: there is no kernel without a layer.
        self.assertEqual(graph["mapped_kernel_time_ns"], graph["kernel_time_ns"], steps)
        kernels = [t for t in tasks if t["kind"] == "kernel"]
        counted = {t["step"] for t in kernels if t["counted"] == "1"}
        self.assertGreaterEqual(len(counted), 3, steps)
        for step in counted:
            layers = [t["layer"] for t in kernels if t["step"] == step]
            for block in range(3):
                expected = 2 if kind == "train" else 1
                self.assertEqual(layers.count("Sequential.%d" % block), expected, layers)

    def test_training(self):
        for warmup in (0, 1, 2, 10):
            with self.subTest(warmup=warmup):
                self.check("train", warmup)

    def test_the_cupti_that_pytorch_brings_is_taken_and_named(self):
        """A real one, which cannot work with the fake driver: the program runs on all the same."""
        cupti = cupti_of_pytorch()
        if not cupti:
            self.skipTest("this PyTorch has no CUPTI")
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "program.py")
            recording = os.path.join(folder, "run.ddtrace")
            with open(program, "w") as file:
                file.write(PROGRAM)
            done = run("trace", "-o", recording, "--warmup", "2", "--steps", "5",
                       "--", sys.executable, program, "train", DAYDREAM_CUPTI="")  # fmt: skip
            info = json.loads(daydream("info", "--format", "json", recording))
        self.assertIn("warning[W0507]", done.stderr)
        self.assertIn(os.path.realpath(cupti), done.stderr)
        self.assertGreaterEqual(info["events_by_kind"]["frame"], 5 * 3)

    def test_inference(self):
        for warmup in (0, 2, 10):
            with self.subTest(warmup=warmup):
                self.check("infer", warmup)


if __name__ == "__main__":
    if "DAYDREAM" not in os.environ:
        harness.skip("this build has no recorder")
    harness.main()
