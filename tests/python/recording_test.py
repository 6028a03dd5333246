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


def daydream(*words):
    done = subprocess.run([os.environ["DAYDREAM"], *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


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

    def test_inference(self):
        for warmup in (0, 2, 10):
            with self.subTest(warmup=warmup):
                self.check("infer", warmup)


if __name__ == "__main__":
    if "DAYDREAM" not in os.environ:
        harness.skip("this build has no recorder")
    harness.main()
