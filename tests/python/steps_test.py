"""Whole programs: what counts as a step, and in which steps layers are labelled."""

import unittest

import harness

harness.need_torch()
TRAIN = """
import torch, torch.nn as nn
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
call = nn.Module.__call__

def step():
    optimizer.zero_grad()
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()
"""


def labelled_steps(marks):
    """Numbers of the steps in which layers are marked."""
    number, found = 0, set()
    for mark in marks:
        if mark.kind == "STEP":
            number = mark.value
        elif mark.kind == "LAYER_BEGIN":
            found.add(number)
    return sorted(found)


def steps(marks):
    return [m.value for m in harness.of(marks, "STEP")]


def ranges(marks):
    return [m.name for m in harness.of(marks, "RANGE_BEGIN")]


def notes(marks):
    return dict(m.name.split("=", 1) for m in harness.of(marks, "NOTE"))


class Steps(unittest.TestCase):
    def run_ok(self, script, record="warmup=4;labels=2", run=harness.run_forked):
        result = run(script, record)
        self.assertEqual((result.code, harness.complaints(result)), (0, []), result.err)
        self.assertTrue(harness.balanced(result.marks))
        return result

    def test_a_step_ends_with_the_step_of_the_optimizer(self):
        marks = self.run_ok(TRAIN + "for _ in range(8): step()").marks
        self.assertEqual(steps(marks), list(range(1, 9)))
        self.assertEqual(notes(marks)["steps"], "SGD")
        after = [m.kind for m in marks[marks.index(harness.of(marks, "STEP")[5]) :]]
        self.assertEqual(after[1], "RANGE_BEGIN")

    def test_the_ranges_of_a_step_are_named_as_the_profiler_names_them(self):
        marks = self.run_ok(TRAIN + "step()").marks
        want = ["Optimizer.zero_grad#SGD.zero_grad", "## backward ##", "Optimizer.step#SGD.step"]
        self.assertEqual(ranges(marks), want)

    def test_layers_are_labelled_in_the_first_step_and_at_the_end_of_the_warm_up(self):
        script = TRAIN + "for _ in range(8): step()\nassert nn.Module.__call__ is call.__wrapped__"
        marks = self.run_ok(script).marks
        self.assertEqual(labelled_steps(marks), [0, 2, 3])
        kinds = [m.kind for m in harness.of(marks, "STEP", "LABELS_BEGIN", "LABELS_END")]
        self.assertEqual(kinds[:2], ["LABELS_BEGIN", "LABELS_END"])
        self.assertEqual(kinds[3:8], ["STEP", "LABELS_BEGIN", "STEP", "LABELS_END", "STEP"])

    def test_without_warm_up_the_first_step_is_labelled(self):
        marks = self.run_ok(TRAIN + "for _ in range(4): step()", "warmup=0;labels=3").marks
        self.assertEqual(labelled_steps(marks), [0])

    def test_labels_may_be_longer_than_the_warm_up(self):
        marks = self.run_ok(TRAIN + "for _ in range(4): step()", "warmup=2;labels=3").marks
        self.assertEqual(labelled_steps(marks), [0, 1])
        self.assertEqual(len(harness.of(marks, "LABELS_BEGIN")), 1)

    def test_labelled_steps_are_counted_from_the_first_mark(self):
        infer = "import torch, torch.nn as nn\nm = nn.Linear(1, 1)\n"
        infer += "for _ in range(17): m(torch.ones(1, 1))"
        for script in (TRAIN + "for _ in range(15): step()", infer):
            for warmup, want in ((0, [0]), (1, [0]), (2, [0, 1]), (10, [0, 7, 8, 9])):
                marks = self.run_ok(script, "warmup=%d;labels=3" % warmup).marks
                self.assertEqual(steps(marks)[:14], list(range(1, 15)))
                self.assertEqual(labelled_steps(marks), want)
                kinds = [m.kind for m in harness.of(marks, "STEP", "LABELS_BEGIN", "LABELS_END")]
                if warmup == 10:  # whole steps: on right after a mark, off right before one
                    self.assertEqual(kinds[9:11], ["LABELS_BEGIN", "STEP"])
                last = want[-1] + 2 + (warmup == 10) * 2
                self.assertEqual(kinds[last - 1 : last + 1], ["LABELS_END", "STEP"])

    def test_steps_say_that_they_are_those_of_torch(self):
        marks = self.run_ok(TRAIN + "for _ in range(2): step()").marks
        self.assertEqual([m.name for m in harness.of(marks, "STEP")], ["torch", "torch"])

    def test_other_threads_run_during_a_step_mark(self):
        script = TRAIN + """
import ctypes, os, threading
library = ctypes.CDLL(os.environ["DAYDREAM_INJECT"])
library.mark_log_hold_step()
def release():
    while library.mark_log_step_is_awaited(): pass
    print(library.mark_log_release_step())
other = threading.Thread(target=release)
other.start()
step()
other.join()
"""
        self.assertEqual(self.run_ok(script).out, "1\n")

    def test_layers_off_marks_phases_and_steps_only(self):
        marks = self.run_ok(TRAIN + "for _ in range(4): step()", "layers=off;warmup=4").marks
        self.assertEqual((steps(marks), labelled_steps(marks)), ([1, 2, 3, 4], []))
        self.assertEqual(harness.of(marks, "LABELS_BEGIN", "BACKWARD_ENTER"), [])
        self.assertEqual(len(ranges(marks)), 12)

    def test_layers_force_labels_every_step(self):
        marks = self.run_ok(TRAIN + "for _ in range(4): step()", "layers=force;warmup=1").marks
        self.assertEqual(labelled_steps(marks), [0, 1, 2, 3])

    def test_a_capture_that_does_not_follow_steps_labels_every_step(self):
        marks = self.run_ok(TRAIN + "for _ in range(4): step()", "capture=cudaProfilerApi").marks
        self.assertEqual(labelled_steps(marks), [0, 1, 2, 3])

    def test_bad_settings_are_the_defaults(self):
        marks = self.run_ok(TRAIN + "for _ in range(12): step()", "warmup=x;labels=;what").marks
        self.assertEqual(labelled_steps(marks), [0, 7, 8, 9])

    def test_only_the_first_optimizer_of_a_gan_counts(self):
        script = TRAIN + """
other = torch.optim.Adam(nn.Linear(2, 2).parameters())
for _ in range(3): step(); other.step()
"""
        marks = self.run_ok(script).marks
        self.assertEqual(steps(marks), [1, 2, 3])
        self.assertEqual(ranges(marks).count("Optimizer.step#Adam.step"), 3)

    def test_the_second_of_two_stages_counts_while_the_first_optimizer_lives_on(self):
        script = TRAIN + """
def stage(n):
    for _ in range(n):
        own.zero_grad()
        model(torch.ones(2, 4)).sum().backward()
        own.step()
own = first = torch.optim.SGD(model[0].parameters(), lr=0.1)
stage(5)
own = second = torch.optim.SGD(model.parameters(), lr=0.1)
stage(20)
"""
        marks = self.run_ok(script).marks
        # Eight steps pass until it is clear that the first is silent.
        self.assertEqual(steps(marks), list(range(1, 1 + 5 + 20 - 8)))

    def test_five_steps_of_a_critic_for_each_of_the_generator_are_one_step(self):
        script = TRAIN + """
critic = torch.optim.Adam(model[0].parameters())
for _ in range(6):
    step()
    for _ in range(5):
        model(torch.ones(2, 4)).sum().backward()
        critic.step()
"""
        self.assertEqual(steps(self.run_ok(script).marks), list(range(1, 7)))

    def test_one_backward_pass_makes_one_step_whatever_steps_after_it(self):
        script = TRAIN + """
for _ in range(4):
    model(torch.ones(2, 4)).sum().backward()
    for group in model.parameters():  # as ZeRO-3 does
        optimizer.param_groups[0]["params"] = [group]
        optimizer.step()
"""
        self.assertEqual(steps(self.run_ok(script).marks), [1, 2, 3, 4])

    def test_a_program_that_has_no_backward_pass_of_pytorch_steps_with_its_optimizer(self):
        script = TRAIN + """
for _ in range(4):  # evolution strategies, or gradients from elsewhere
    for p in model.parameters(): p.grad = torch.ones_like(p)
    optimizer.step()
"""
        self.assertEqual(steps(self.run_ok(script).marks), [1, 2, 3, 4])

    def test_a_backward_pass_that_runs_past_us_is_noticed_in_the_end(self):
        script = TRAIN + """
step()
engine = torch.autograd.Variable._execution_engine
for _ in range(80):  # as Megatron's pipeline does
    loss = model(torch.ones(2, 4)).sum()
    engine.run_backward((loss,), (torch.ones(()),), False, False, (), True, True)
    optimizer.step()
"""
        self.assertEqual(len(steps(self.run_ok(script).marks)), 1 + 80 - 64)

    def test_accumulated_gradients_are_one_step(self):
        script = TRAIN + """
for i in range(6):
    model(torch.ones(2, 4)).sum().backward()
    if i % 3 == 2: optimizer.step()
"""
        self.assertEqual(steps(self.run_ok(script).marks), [1, 2])

    def test_a_new_optimizer_takes_over_when_the_first_is_gone(self):
        script = TRAIN + """
for _ in range(2): step()
del optimizer
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(2): step()
"""
        self.assertEqual(steps(self.run_ok(script).marks), [1, 2, 3, 4])

    def test_a_subclass_that_calls_the_step_of_its_base_steps_once(self):
        script = TRAIN + """
class Mine(torch.optim.SGD):
    def step(self, closure=None):
        return super().step(closure)
optimizer = Mine(model.parameters(), lr=0.1)
torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
for _ in range(3): step(); scheduler.step()
"""
        self.assertEqual(steps(self.run_ok(script).marks), [1, 2, 3])

    def test_a_closure_is_part_of_its_step(self):
        script = TRAIN + """
optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3)
def closure():
    optimizer.zero_grad()
    loss = model(torch.ones(2, 4)).square().sum()
    loss.backward()
    return loss
for _ in range(2): optimizer.step(closure)
"""
        self.assertEqual(steps(self.run_ok(script).marks), [1, 2])

    def test_a_step_that_raises_does_not_count(self):
        script = TRAIN + """
def bad(): raise ValueError
try: optimizer.step(bad)
except ValueError: pass
step()
"""
        self.assertEqual(steps(self.run_ok(script).marks), [1])

    def test_a_step_that_the_scaler_skips_counts(self):
        script = TRAIN + """
scaler = torch.cuda.amp.GradScaler(enabled=False)
for _ in range(2):
    scaler.scale(model(torch.ones(2, 4)).sum()).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
"""
        marks = harness.run_forked(script).marks
        self.assertEqual(steps(marks), [1, 2])
        self.assertEqual(
            ranges(marks)[:6],
            [
                "## backward ##",
                "Optimizer.unscale_#GradScaler.unscale_",
                "Optimizer.clip_grad_norm_",
                "Optimizer.scaled_step#GradScaler.step",
                "Optimizer.step#SGD.step",
                "Optimizer.update#GradScaler.update",
            ],
        )

    def test_inference_counts_calls_of_its_root(self):
        script = """
import torch, torch.nn as nn
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)
    def forward(self, x): return self.inner(x)
before = nn.Module.__call__.__wrapped__
model, other = Model(), nn.Linear(4, 4)
with torch.no_grad():
    for _ in range(9): other(model(torch.ones(1, 4))) if _ % 2 else model(torch.ones(1, 4))
assert vars(nn.Module)["__call__"] is before
"""
        marks = self.run_ok(script, "warmup=6;labels=2").marks
        self.assertEqual(steps(marks), list(range(1, 7)))
        self.assertEqual(labelled_steps(marks), [0, 4, 5])
        self.assertEqual(notes(marks)["steps"], "calls of Model")

    def test_validation_before_training_is_no_step(self):
        script = TRAIN + """
for _ in range(9): model(torch.ones(1, 4))
for _ in range(2): step()
"""
        self.assertEqual(steps(self.run_ok(script).marks), [1, 2])

    def test_a_root_that_calls_itself_makes_one_step(self):
        script = """
import torch, torch.nn as nn
class Tree(nn.Module):
    def __init__(self): super().__init__(); self.leaf = nn.Linear(2, 2)
    def forward(self, x, depth): return self.leaf(x) if depth == 0 else self(x, depth - 1)
tree = Tree()
for _ in range(8): tree(torch.ones(1, 2), 5)
"""
        # The call in which its calls became steps counts twice.
        self.assertEqual(steps(self.run_ok(script).marks), [1, 2, 3, 4, 5, 6])

    def test_training_after_inference_takes_over(self):
        script = """
import torch, torch.nn as nn
class Model(nn.Linear): pass
model = Model(4, 1)
for _ in range(5): model(torch.ones(1, 4))
assert "__call__" in vars(Model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    model(torch.ones(1, 4)).sum().backward()
    optimizer.step()
assert "__call__" not in vars(Model)
"""
        marks = self.run_ok(script).marks
        self.assertEqual(steps(marks), [1, 2, 3, 4, 5])

    def test_a_profiler_with_a_schedule_counts_and_records_the_cpu_only(self):
        script = TRAIN + """
from torch.profiler import ProfilerActivity as A
torch.cuda.is_available = lambda: True
with torch.profiler.profile(activities=[A.CPU, A.CUDA],
                            schedule=torch.profiler.schedule(wait=1, warmup=1, active=2)) as prof:
    for _ in range(4):
        for _ in range(2): step()
        prof.step()
    assert prof.profiler.kineto_activities == {A.CPU}
for _ in range(2): step()
"""
        result = harness.run_forked(script)
        self.assertEqual(result.code, 0, result.err)
        (warning,) = harness.complaints(result)
        self.assertIn("torch.profiler records only the CPU", warning)
        self.assertEqual(steps(result.marks), [1, 2, 3, 4, 5, 6])
        self.assertEqual(notes(result.marks)["steps"], "SGD")

    def test_a_profiler_that_starts_later_does_not_count(self):
        script = TRAIN + """
step()
with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU],
                            schedule=torch.profiler.schedule(wait=0, warmup=1, active=1)) as prof:
    for _ in range(2): step(); prof.step()
"""
        self.assertEqual(steps(self.run_ok(script).marks), [1, 2, 3])

    def test_a_profiler_that_is_told_to_use_the_gpu_by_position_records_the_cpu_only(self):
        setup = """
import torch
class profile:
    def __init__(self, enabled=True, use_cuda=False, *, use_cpu=True, record_shapes=False):
        self.given = (enabled, use_cuda, use_cpu, record_shapes)
torch.autograd.profiler.profile = profile
"""
        script = """
import torch
profile = torch.autograd.profiler.profile
print(profile(True, True, use_cpu=False, record_shapes=True).given, profile(False).given)
try: profile(1, 2, 3)
except TypeError as error: print("positional" in str(error))
"""
        result = harness.run_forked(script, setup=setup)
        want = "(True, False, True, True) (False, False, True, False)\nTrue\n"
        self.assertEqual(result.out, want)
        self.assertEqual(len(harness.complaints(result)), 1)

    def test_batches_are_ranges_with_workers_or_without(self):
        for workers, context in ((0, "None"), (2, "'fork'"), (2, "'spawn'")):
            script = """
import torch
from torch.utils.data import DataLoader, TensorDataset
if __name__ == "__main__":
    data = TensorDataset(torch.arange(8.0))
    for batch in DataLoader(data, 4, num_workers=%d, multiprocessing_context=%s): pass
""" % (workers, context)
            marks = self.run_ok(script, run=harness.run).marks
            kind = "_MultiProcessingDataLoaderIter" if workers else "_SingleProcessDataLoaderIter"
            self.assertEqual(ranges(marks), ["enumerate(DataLoader)#%s.__next__" % kind] * 3)

    def test_the_process_says_what_it_runs(self):
        script = """
import torch, torch.nn as nn
model = nn.Conv2d(3, 8, 3).to(memory_format=torch.channels_last)
optimizer = torch.optim.Adam(model.parameters(), foreach=True)
model(torch.ones(1, 3, 8, 8)).sum().backward()
optimizer.step()
print(torch.__version__)
"""
        result = self.run_ok(script)
        facts = notes(result.marks)
        self.assertEqual(facts["PyTorch"], result.out.strip())
        self.assertEqual(
            facts["model"], "Conv2d parameters=224 dtype=float32 memory_format=channels_last"
        )
        self.assertIn("Adam foreach=True", facts["optimizer"])


if __name__ == "__main__":
    harness.main()
