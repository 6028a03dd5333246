"""DistributedDataParallel with two processes on the CPU."""

import unittest

import harness

harness.need_torch()
SCRIPT = """
import os, sys, torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel

def work(rank, path):
    dist.init_process_group("gloo", init_method="file://" + path, rank=rank, world_size=2)
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        optimizer.zero_grad()
        model(torch.full((2, 4), float(rank))).sum().backward()
        optimizer.step()
    dist.destroy_process_group()

if __name__ == "__main__":
    if not dist.is_available() or not dist.is_gloo_available():
        sys.exit(77)
    context = mp.get_context("spawn")
    path = os.path.join(os.getcwd(), "rendezvous")
    ranks = [context.Process(target=work, args=(r, path)) for r in range(2)]
    for rank in ranks: rank.start()
    for rank in ranks: rank.join()
    sys.exit(max(rank.exitcode for rank in ranks))
"""


class Distributed(unittest.TestCase):
    def test_each_rank_has_its_number_its_steps_and_its_buckets(self):
        result = harness.run(SCRIPT, "warmup=4;labels=2")
        if result.code == 77:
            self.skipTest("no gloo")
        self.assertEqual(result.code, 0, result.err)
        ranks = harness.of(result.marks, "RANK")
        self.assertEqual(sorted(m.value for m in ranks), [0 << 32 | 2, 1 << 32 | 2])
        for pid in {m.pid for m in ranks}:
            marks = [m for m in result.marks if m.pid == pid]
            self.assertTrue(harness.balanced(marks))
            self.assertEqual([m.value for m in harness.of(marks, "STEP")], [1, 2, 3, 4, 5, 6])
            self.assertEqual(
                harness.paths(marks)[:4],
                ["Sequential", "Sequential.0", "Sequential.1", "Sequential.2"],
            )
            buckets = [m.name for m in harness.of(marks, "NOTE") if m.name.startswith("ddp=")]
            self.assertEqual(buckets, ["ddp=Sequential bucket_bytes=100"])


if __name__ == "__main__":
    harness.main()
