"""The pages that the tests look at. Arguments of each test: the program, the folder of the sources."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import unittest

from made_traces import HOSTILE, hostile_trace

PROGRAM, SOURCE = sys.argv[1:3]
SYNTHETIC = os.path.join(SOURCE, "examples", "resnet50-synthetic.ddtrace")
RANKS = os.path.join(SOURCE, "examples", "two-ranks-synthetic")
def run(*args, status=0):
    done = subprocess.run([PROGRAM, *args], capture_output=True, text=True, check=False)
    assert done.returncode == status, (args, done.returncode, done.stderr)
    return done.stdout


def interrupted(at, *args):
    """Ends the command as Ctrl-C does once its progress has come to `at`."""
    told = dict(os.environ, DAYDREAM_PROGRESS_MS="0")
    with subprocess.Popen([PROGRAM, *args, "--progress", "always"], stderr=subprocess.PIPE, text=True,
                          env=told) as program:
        for line in program.stderr:
            if at in line:
                break
        program.send_signal(signal.SIGINT)
        program.stderr.read()
        assert program.wait() == 130, (args, program.returncode)


class Pages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.synthetic = os.path.join(cls.folder.name, "synthetic.html")
        run("report", SYNTHETIC, "--opt", "amp,fuse", "-o", cls.synthetic)
        cls.advice = os.path.join(cls.folder.name, "advice.html")
        run("advise", SYNTHETIC, "--html", "-o", cls.advice)
        trace = os.path.join(cls.folder.name, "hostile.json")
        with open(trace, "w", encoding="utf-8") as file:
            json.dump(hostile_trace(), file)
        cls.ranks = os.path.join(cls.folder.name, "ranks.html")
        run("report", RANKS, "--opt", "bandwidth(x2)", "-o", cls.ranks)
        cls.sweep = os.path.join(cls.folder.name, "sweep.html")
        found = os.path.join(cls.folder.name, "sweep.json")
        run("sweep", SYNTHETIC, "--opt", "amp(dtype={bf16,fp16}),prefetch(1..2)", "--no-interval", "--format",
            "json", "-o", found)
        run("report", found, "-o", cls.sweep)
        cls.scale = os.path.join(cls.folder.name, "scale.html")
        found = os.path.join(cls.folder.name, "scale.json")
        run("scale", SYNTHETIC, "--fabric", "nvlink2", "--ranks", "1,2,4", "--format", "json", "-o", found)
        run("report", found, "-o", cls.scale)
        cls.hostile = os.path.join(cls.folder.name, "hostile.html")
        run("report", trace, "--opt", "free-launch", "--title", HOSTILE, "-o", cls.hostile)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def text(self, path):
        with open(path, encoding="utf-8") as file:
            return file.read()


def main():
    result = unittest.main(argv=sys.argv[:1], exit=False, verbosity=2).result
    if not result.wasSuccessful():
        sys.exit(1)
    sys.exit(77 if result.skipped else 0)
