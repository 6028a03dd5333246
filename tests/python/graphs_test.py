"""Steps of programs that capture them into a CUDA graph; a stand-in for torch.cuda.CUDAGraph."""

import unittest

import harness

harness.need_torch()
SETUP = """
import torch
class CUDAGraph:
    def capture_begin(self, pool=None): pass
    def capture_end(self): pass
    def replay(self): return "replayed"
torch.cuda.CUDAGraph = CUDAGraph
"""
SCRIPT = """
import torch, torch.nn as nn
model = nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def step(*optimizers):
    model(torch.ones(1, 2)).sum().backward()
    for o in optimizers: o.step()
def captured(*optimizers):
    graph = torch.cuda.CUDAGraph()
    graph.capture_begin()
    step(*optimizers)
    graph.capture_end()
    return graph
"""


class Graphs(unittest.TestCase):
    def steps(self, script):
        result = harness.run_forked(SCRIPT + script, "layers=off", SETUP)
        self.assertEqual((result.code, harness.complaints(result)), (0, []), result.err)
        return [m.value for m in harness.of(result.marks, "STEP")]

    def test_a_captured_step_is_none_and_each_replay_is_one(self):
        script = """
for _ in range(2): step(optimizer)
graph = captured(optimizer)
assert [graph.replay() for _ in range(3)] == ["replayed"] * 3
"""
        self.assertEqual(self.steps(script), [1, 2, 3, 4, 5])
        self.assertEqual(self.steps("captured(optimizer)"), [])

    def test_replays_count_without_any_step_before(self):
        script = "g = captured(optimizer)\nfor _ in range(3): g.replay()"
        self.assertEqual(self.steps(script), [1, 2, 3])

    def test_a_graph_without_the_step_of_an_optimizer_ends_no_step(self):
        script = "g = captured()\nfor _ in range(3): g.replay(); step(optimizer)"
        self.assertEqual(self.steps(script), [1, 2, 3])

    def test_two_optimizers_in_a_graph_are_one_step(self):
        script = """
g = captured(optimizer, torch.optim.Adam(model.parameters()), optimizer)
for _ in range(3): g.replay()
"""
        self.assertEqual(self.steps(script), [1, 2, 3])

    def test_a_graph_goes_on_when_its_optimizer_is_gone(self):
        script = """
step(optimizer)
g = captured(optimizer)
g.replay()
del optimizer
for _ in range(2): g.replay()
"""
        self.assertEqual(self.steps(script), [1, 2, 3, 4])

    def test_steps_after_a_capture_that_failed_count(self):
        script = """
g = torch.cuda.CUDAGraph()
g.capture_begin()
try: g.capture_end()
except RuntimeError: pass
step(optimizer)
"""
        failing = SETUP.replace("capture_end(self): pass", "capture_end(self): raise RuntimeError")
        result = harness.run_forked(SCRIPT + script, "layers=off", failing)
        self.assertEqual([m.value for m in harness.of(result.marks, "STEP")], [1])


class LayersOfGraphs(unittest.TestCase):
    def marks(self, script, record="warmup=2;labels=1"):
        result = harness.run_forked(SCRIPT + script, record, SETUP)
        self.assertEqual((result.code, harness.complaints(result)), (0, []), result.err)
        self.assertTrue(harness.balanced(result.marks))
        return result.marks

    def test_layers_are_marked_in_a_capture_and_not_after_it(self):
        script = """
for _ in range(4): step(optimizer)
graph = captured(optimizer)
for _ in range(2): step(optimizer); graph.replay()
"""
        marks = self.marks(script)
        # One layer each of step 0 and 1, which are labelled, and of the capture in step 4.
        self.assertEqual(harness.paths(marks), ["Linear"] * 3)
        kinds = [m.kind for m in marks]
        last = len(kinds) - 1 - kinds[::-1].index("LAYER_BEGIN")
        self.assertEqual(kinds[:last].count("STEP"), 4)
        self.assertEqual(len(harness.of(marks, "LABELS_BEGIN")), 1, "no step is labelled by it")
        self.assertEqual(len(harness.of(marks, "BACKWARD_ENTER")), 3)

    def test_a_capture_with_layers_off_marks_none(self):
        script = "for _ in range(4): step(optimizer)\ngraph = captured(optimizer)"
        self.assertEqual(harness.paths(self.marks(script, "layers=off")), [])

    def test_a_failed_capture_takes_the_marks_out_too(self):
        failing = SETUP.replace("capture_end(self): pass", "capture_end(self): raise RuntimeError")
        script = """
for _ in range(4): step(optimizer)
before = nn.Module.__call__
g = torch.cuda.CUDAGraph()
g.capture_begin()
assert nn.Module.__call__ is not before
try: g.capture_end()
except RuntimeError: pass
assert nn.Module.__call__ is before
"""
        result = harness.run_forked(SCRIPT + script, "warmup=2;labels=1", failing)
        self.assertEqual(result.code, 0, result.err)


if __name__ == "__main__":
    harness.main()
