"""Marks change no result: losses have the same bits with and without them."""

import unittest

import harness

harness.need_torch()
MODELS = """
import sys
import torch
sys.path.insert(0, %r)
import models
torch.manual_seed(0)
torch.set_num_threads(1)
for name, step in models.trainings():
    print(name, " ".join(step().hex() for _ in range(5)))
"""


class Losses(unittest.TestCase):
    def test_losses_have_the_same_bits(self):
        script = MODELS % harness.os.path.dirname(harness.os.path.abspath(__file__))
        plain = harness.run(script, armed=False)
        marked = harness.run(script, "layers=force")
        labelled = harness.run(script, "warmup=1000000;labels=1000000")
        self.assertEqual(plain.code, 0, plain.err)
        self.assertEqual(len(plain.out.splitlines()), 6)
        self.assertEqual(plain.out, marked.out, marked.err)
        self.assertEqual(plain.out, labelled.out, labelled.err)
        self.assertEqual(plain.marks, [])
        self.assertGreater(len(harness.of(marked.marks, "BACKWARD_ENTER")), 500)


if __name__ == "__main__":
    harness.main()
