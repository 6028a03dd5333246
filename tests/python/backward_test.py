"""Backward attribution, checked against the layer that was open when autograd made the node.

That truth comes from autograd itself: in anomaly mode every node stores the "stack" of its making,
and format_stack is replaced by one that returns the open layers, which global module hooks keep
here. The rule is written once more, as the reference for the reader's: entered and not exited
layers are a set; a node belongs to the deepest of them, ties to the one entered last.
"""

import collections
import contextlib
import sys
import traceback
import unittest

import harness

torch = harness.armed()
from models import Cnn, Rnn, Towers, Transformer, classify, gan  # noqa: E402
from torch import nn  # noqa: E402

import daydream_torch.names as names  # noqa: E402


class Attribution:
    """The rule. Feed it marks in order; at() is the layer of a node that runs now."""

    def __init__(self):
        self.open = []  # forward layers of the thread, innermost last
        self.depth = {}  # (layer, call) -> depth of that call
        self.sets = []  # one for each backward pass that runs: {(layer, call): order of entering}
        self.ranges = []
        self.entered = 0

    def feed(self, mark):
        call = (mark.name, mark.value)
        if mark.kind == "LAYER_BEGIN":
            self.open.append(mark.name)
            self.depth[call] = len(self.open)
        elif mark.kind == "LAYER_END":
            self.open.pop()
        elif mark.kind == "RANGE_BEGIN":
            self.ranges.append(mark.name)
            if mark.name == "## backward ##":
                self.sets.append({})
        elif mark.kind == "RANGE_END":
            if self.ranges.pop() == "## backward ##":
                self.sets.pop()
        elif mark.kind == "BACKWARD_ENTER":
            self.entered += 1
            self.sets[-1][call] = self.entered
        elif mark.kind == "BACKWARD_EXIT":
            self.sets[-1].pop(call, None)

    def at(self):
        active = self.sets[-1]
        if not active:
            return None
        return max(active, key=lambda call: (self.depth[call], active[call]))[0]


class Truth:
    """Open layers by hooks of our own, and for every node that runs which layer made it."""

    def __init__(self):
        self.stack = []
        self.positions = []  # (count of marks when the node ran, layer that made it, node name)

    @contextlib.contextmanager
    def watching(self):
        module = nn.modules.module
        hooks = [
            module.register_module_forward_pre_hook(lambda m, a: self.stack.append(id(m))),
            module.register_module_forward_hook(lambda m, a, o: self.stack.pop() and None),
        ]
        places = [traceback] + ([torch.fx.traceback] if hasattr(torch.fx, "traceback") else [])
        saved = [place.format_stack for place in places]
        backward = torch.autograd.backward

        def watched_backward(tensors, *args, **kwargs):
            self.watch_nodes(tensors)
            return backward(tensors, *args, **kwargs)

        try:
            for place in places:
                place.format_stack = lambda *args, **kwargs: [self.innermost()]
            torch.autograd.backward = watched_backward
            with torch.autograd.set_detect_anomaly(True, **_NO_NAN_CHECK):
                yield self
        finally:
            torch.autograd.backward = backward
            for place, function in zip(places, saved):
                place.format_stack = function
            for hook in hooks:
                hook.remove()

    def innermost(self):
        return self.stack[-1] if self.stack else None

    def watch_nodes(self, tensors):
        tensors = [tensors] if isinstance(tensors, torch.Tensor) else tensors
        todo, seen = [t.grad_fn for t in tensors if t.grad_fn is not None], set()
        while todo:
            node = todo.pop()
            if node in seen or type(node).__name__ == "AccumulateGrad":
                continue
            seen.add(node)
            maker = node.metadata["traceback_"][0]
            node.register_prehook(self.position(names.ids.get(maker, 0), type(node).__name__))
            todo.extend(n for n, _ in node.next_functions if n is not None)

    def position(self, maker, title):
        return lambda _: self.positions.append((harness.count(), maker, title))


_NO_NAN_CHECK = {"check_nan": False} if hasattr(torch, "compile") else {}  # an option since 2.0


def judge(step):
    """(nodes, [(node, made by, given to)] of those given to a wrong layer) of one step."""
    step()  # names the layers
    harness.clear()
    truth = Truth()
    with truth.watching():
        step()
    rule, wrong, at = Attribution(), [], 0
    marks = harness.marks()
    texts = {harness._log().mark_log_name(i).decode(): i for i in range(1, 2000)}
    for count, maker, title in truth.positions:
        for mark in marks[at:count]:
            rule.feed(mark)
        at = count
        given = texts.get(rule.at(), 0)
        if given != maker:
            wrong.append((title, maker, given))
    return len(truth.positions), wrong


class Backward(unittest.TestCase):
    def check(self, step, at_least):
        nodes, wrong = judge(step)
        print("%d of %d nodes right" % (nodes - len(wrong), nodes), end=" ... ", file=sys.stderr)
        self.assertEqual(wrong, [])
        self.assertGreaterEqual(nodes, at_least)

    def setUp(self):
        torch.manual_seed(0)

    def test_every_node_of_a_cnn_with_residuals_and_in_place_relu(self):
        self.check(classify(Cnn(), torch.randn(4, 3, 8, 8)), 25)

    def test_every_node_of_a_cnn_in_evaluation_mode(self):
        self.check(classify(Cnn().eval(), torch.randn(4, 3, 8, 8)), 25)

    def test_every_node_of_a_transformer_with_keyword_calls_and_tied_weights(self):
        self.check(classify(Transformer(), torch.randint(0, 50, (4, 16))), 100)

    def test_every_node_of_an_rnn(self):
        self.check(classify(Rnn(), torch.randn(5, 3, 8)), 30)

    def test_every_node_of_two_towers(self):
        inputs = torch.randint(0, 50, (4, 6)), torch.randn(4, 3, 8, 8)
        self.check(classify(Towers(), *inputs), 20)

    def test_every_node_of_a_gan(self):
        self.check(gan(), 15)

    def test_every_node_of_checkpointing(self):
        self.check(classify(Transformer(recompute=False), torch.randint(0, 50, (4, 16))), 100)

    def test_every_node_of_reentrant_checkpointing(self):
        self.check(classify(Transformer(recompute=True), torch.randint(0, 50, (4, 16))), 100)

    def test_recomputation_is_a_range_in_the_backward_pass(self):
        for reentrant in (False, True):
            step = classify(Transformer(recompute=reentrant), torch.randint(0, 50, (4, 16)))
            harness.clear()
            step()
            marks = harness.marks()
            ranges, inside = [], collections.Counter()
            for mark in marks:
                if mark.kind == "RANGE_BEGIN":
                    ranges.append(mark.name)
                elif mark.kind == "RANGE_END":
                    ranges.pop()
                elif mark.kind == "LAYER_BEGIN" and ".norm1\t" in mark.name:
                    inside[tuple(ranges)] += 1
            self.assertEqual(inside, {(): 3, ("## backward ##", "## recompute ##"): 3})
            self.assertTrue(harness.balanced(marks))


if __name__ == "__main__":
    harness.main()
