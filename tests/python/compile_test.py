"""torch.compile: regions are layers, and compiling goes as it goes without marks."""

import unittest

import harness

harness.need_torch()
import torch  # noqa: E402

if not hasattr(torch, "compile"):
    harness.skip("PyTorch %s has no torch.compile" % torch.__version__)

MODEL = """
import torch
import torch._dynamo
from torch import nn
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
    def forward(self, x): return torch.relu(self.linear(x)) + x
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(Block(), Block())
    def forward(self, x): return self.blocks(x)
torch.manual_seed(0)
model = Model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def train(call, count=6):
    for _ in range(count):
        optimizer.zero_grad()
        loss = call(torch.ones(2, 4)).sum()
        loss.backward()
        optimizer.step()
        print(loss.item().hex())
def report():
    c = torch._dynamo.utils.counters
    breaks = c["graph_break"]
    print(dict(c["stats"]), sorted(breaks), dict(c["recompiles"]))
    print(sum(breaks.values()), "breaks")
"""
WHOLE = MODEL + "train(torch.compile(model, backend='aot_eager', fullgraph=True)); report()"
METHOD = MODEL + "model.compile(backend='aot_eager', fullgraph=True); train(model); report()"
BLOCKS = MODEL + """
for block in model.blocks: block.compile(backend='aot_eager', fullgraph=True)
train(model); report()
"""
FUNCTION = MODEL + """
@torch.compile(backend='aot_eager', fullgraph=True)
def scaled(x): return model(x) * 2
train(scaled); report()
"""
OPTIMIZER = MODEL + """
step = torch.compile(optimizer.step, backend='eager')
for _ in range(3):
    model(torch.ones(2, 4)).sum().backward()
    step()
report()
"""
BROKEN = MODEL + """
class Printing(Block):
    def forward(self, x):
        torch._dynamo.graph_break()
        return super().forward(x)
model.blocks[1] = Printing()
train(torch.compile(model, backend='aot_eager')); report()
"""
EXPLAIN = MODEL + """
e = torch._dynamo.explain(model)(torch.ones(2, 4))
print(e.graph_count, e.graph_break_count)
print(torch.export.export(model, (torch.ones(2, 4),)).graph)
"""


class Compile(unittest.TestCase):
    def same_as_without(self, script, record="warmup=4;labels=2", lines=None):
        """Losses, graphs, breaks and recompilations; lines: how many lines of them to compare."""
        plain = harness.run_forked(script, None)
        marked = harness.run_forked(script, record)
        self.assertEqual((plain.code, marked.code), (0, 0), plain.err + marked.err)
        self.assertEqual(plain.out.splitlines()[:lines], marked.out.splitlines()[:lines])
        self.assertTrue(harness.balanced(marked.marks))
        return marked.marks

    def test_a_compiled_model_is_one_layer_in_the_labelled_steps(self):
        marks = self.same_as_without(WHOLE)
        self.assertEqual(harness.paths(marks), ["Model", "compiled:Model"] * 3)
        entered = {m.name.split("\t")[0] for m in harness.of(marks, "BACKWARD_ENTER")}
        self.assertEqual(entered, {"Model", "compiled:Model"})

    def test_so_is_one_by_its_own_compile(self):
        self.assertEqual(harness.paths(self.same_as_without(METHOD))[1], "compiled:Model")

    def test_compiled_blocks_show_within_their_layers(self):
        paths = harness.paths(self.same_as_without(BLOCKS))
        want = ["Model", "Model.blocks", "Model.blocks.0", "compiled:Block"]
        self.assertEqual(paths[:6], want + ["Model.blocks.1", "compiled:Block"])

    def test_a_compiled_function_is_a_layer(self):
        self.assertEqual(harness.paths(self.same_as_without(FUNCTION)), ["compiled:scaled"] * 3)

    # A break is counted once for every frame it unwinds, and here our wrapper is one more.

    def test_a_compiled_optimizer_has_the_same_graphs_and_breaks(self):
        self.same_as_without(OPTIMIZER, lines=-1)

    def test_graph_breaks_are_those_of_the_program(self):
        self.same_as_without(BROKEN)

    def test_forced_labels_have_the_same_graphs_and_breaks(self):
        for script in (WHOLE, BLOCKS, BROKEN):
            self.same_as_without(script, "layers=force", lines=-1)

    def test_dynamo_and_export_see_an_untouched_module(self):
        self.same_as_without(EXPLAIN)


if __name__ == "__main__":
    harness.main()
