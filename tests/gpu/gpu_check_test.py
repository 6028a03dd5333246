"""scripts/gpu-check where there is no GPU, a broken driver, and the fake driver of the tests.

    gpu_check_test.py SCRIPT BUILD
"""

import glob
import os
import subprocess
import sys
import tempfile
import unittest

SCRIPT, BUILD = sys.argv.pop(1), sys.argv.pop(1)


def check(*words, **more):
    done = subprocess.run([sys.executable, SCRIPT, *words], stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.STDOUT, env=dict(os.environ, **more))  # fmt: skip
    return done.returncode, done.stdout


class GpuCheck(unittest.TestCase):
    def test_without_a_driver_it_prints_the_list(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "libcuda.so.1"), "w") as file:
                file.write("no library")
            code, text = check(BUILD, folder, LD_LIBRARY_PATH=folder)
        if glob.glob("/dev/nvidia[0-9]*"):
            self.assertEqual(code, 1)
            self.assertIn("start the container with", text)
        else:
            self.assertEqual(code, 125)
            self.assertIn("there is no GPU here (there is no driver)", text)
            self.assertGreaterEqual(len(text.splitlines()), 12)

    @unittest.skipUnless(os.path.exists(BUILD + "/tests/tracer/fake_cuda/gpu_program"),
                         "this build has no recorder")  # fmt: skip
    def test_the_fake_driver_has_a_whole_recording(self):
        with tempfile.TemporaryDirectory() as folder:
            code, text = check("--rehearse", "--only", "recording,broken,nccl", BUILD, folder)
            with open(folder + "/report.txt") as file:
                self.assertIn("held", file.read())
        self.assertEqual(code, 0, text)
        lines = [line.split() for line in text.splitlines() if line[:1].isalpha()]
        self.assertEqual([line[:2] for line in lines[:3]],
                         [["recording", "held"], ["nccl", "not"], ["broken", "held"]])  # fmt: skip
        self.assertIn("220 tasks, all with their launch, 0 lost", text)


if __name__ == "__main__":
    unittest.main(verbosity=2)
