"""What marks cost: thread CPU time of a module call with and without them, in nanoseconds.

Bursts of 100 calls with and without marks take turns and the shortest of each counts, so that other
load on the machine does not. Usage, with the variables of tests/python/CMakeLists.txt:
`python3 call_bench.py [BURSTS]`.
"""

import sys
import time

import harness

torch = harness.armed()
from torch import nn  # noqa: E402

from daydream_torch import layers, sink  # noqa: E402

CALLS = 100


class Same(nn.Module):
    def forward(self, x):
        return x


class Twice(nn.Module):
    def forward(self, x):
        return x * 2


class Chain(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.parts = nn.ModuleList(kind() for _ in range(CALLS))

    def forward(self, x):
        for part in self.parts:
            x = part(x)
        return x


def measure(burst, bursts):
    """(nanoseconds of a call without marks, what marks add)."""
    marked = nn.Module.__call__
    best = {marked.__wrapped__: float("inf"), marked: float("inf")}
    try:
        for _ in range(bursts):
            for call in best:
                nn.Module.__call__ = call
                burst()
                begin = time.thread_time_ns()
                burst()
                best[call] = min(best[call], time.thread_time_ns() - begin)
            harness.clear()
    finally:
        nn.Module.__call__ = marked
    bare = best.pop(marked.__wrapped__)
    return bare / CALLS, (best[marked] - bare) / CALLS


def identity(bursts):
    layers.watch_roots(None)
    chain, x = Chain(Same), torch.ones(1)
    return measure(lambda: chain(x), bursts)


def forward_and_backward(bursts):
    chain, x = Chain(Twice), torch.ones(1, requires_grad=True)
    return measure(lambda: chain(x).sum().backward(), bursts)


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    print("PyTorch %s, %s" % (torch.__version__, "extension" if sink.extension else "ctypes"))
    print("module call                      %5.0f ns, marks %+6.0f" % identity(count))
    both = forward_and_backward(count // 4)
    print("multiplication, fwd and backward %5.0f ns, marks %+6.0f" % both)
