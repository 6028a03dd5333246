"""Runs in the environment that the wheel was installed into, which has no PyTorch: stand-ins show when
record() and the callbacks call which of its functions. What they record only PyTorch can show
(with_torch.py)."""

import os
import sys
import tempfile
import types
import unittest
import warnings

import daydream as dd


class Profile:
    """Calls on_trace_ready as torch.profiler.profile does: after wait + warmup + active steps, and where it
    ends in the middle of the active ones."""

    made = []

    def __init__(self, activities, record_shapes, schedule, on_trace_ready):
        self.activities, self.record_shapes = activities, record_shapes
        self.schedule, self.ready, self.steps = schedule, on_trace_ready, 0
        Profile.made.append(self)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.ended = True
        if sum(self.schedule[:2]) <= self.steps < sum(self.schedule):
            self.ready(self)

    def step(self):
        self.steps += 1
        if self.steps == sum(self.schedule):
            self.ready(self)

    def export_chrome_trace(self, path):
        with open(path, "w") as f:
            f.write("{}")


def stand_in_torch(gpu=True, ranks=1):
    torch = types.ModuleType("torch")
    torch.cuda = types.SimpleNamespace(is_available=lambda: gpu)
    torch.distributed = types.SimpleNamespace(
        is_available=lambda: True,
        is_initialized=lambda: ranks > 1,
        get_world_size=lambda: ranks,
        get_rank=lambda: ranks - 1,
    )
    torch.profiler = types.SimpleNamespace(
        ProfilerActivity=types.SimpleNamespace(CPU="cpu", CUDA="cuda"),
        profile=Profile,
        schedule=lambda wait, warmup, active, repeat: (wait, warmup, active),
    )
    return torch


class WithoutTorch(unittest.TestCase):
    def test_the_message_says_what_else_records(self):
        with self.assertRaises(ImportError) as caught:
            with dd.record("run.json"):
                pass
        self.assertIn("daydream trace -o run -- python train.py", str(caught.exception))
        self.assertIn(sys.executable, str(caught.exception))
        self.assertIn(str(caught.exception.__cause__), str(caught.exception))

    def test_a_callback_without_its_framework_says_what_to_install(self):
        for callback, package in ((dd.callbacks.lightning, "lightning"),
                                  (dd.callbacks.hugging_face, "transformers")):
            with self.subTest(package), self.assertRaises(ImportError) as caught:
                callback("run.json")
            self.assertIn("pip install %s" % package, str(caught.exception))
            self.assertIn(sys.executable, str(caught.exception))


class Recording(unittest.TestCase):
    def setUp(self):
        sys.modules["torch"] = stand_in_torch()
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, "run.json")
        Profile.made.clear()

    def tearDown(self):
        del sys.modules["torch"]
        self.folder.cleanup()

    def test_torch_is_imported_only_here(self):
        del sys.modules["torch"]
        self.assertRaises(ImportError, lambda: dd.record(self.path).__enter__())
        sys.modules["torch"] = stand_in_torch()

    def test_it_records_so_many_steps(self):
        with dd.record(self.path, skip=1, warmup=1, steps=2) as recorder:
            for i in range(4):
                self.assertFalse(recorder.written)
                recorder.step()
        self.assertTrue(recorder.written)
        self.assertEqual(Profile.made[0].activities, ["cpu", "cuda"])
        self.assertTrue(Profile.made[0].record_shapes)
        self.assertTrue(Profile.made[0].ended)
        with self.assertRaises(dd.Error):  # the stand-in wrote no trace
            recorder.trace()

    def test_too_few_steps_are_told(self):
        for steps in (1, 12):  # before it records, and while it does
            with dd.record(self.path) as recorder:
                for _ in range(steps):
                    recorder.step()
            self.assertFalse(os.path.exists(self.path))
            self.assertRaisesRegex(RuntimeError, "13 times", recorder.trace)

    def test_a_recorder_can_be_used_again(self):
        recorder = dd.record(self.path, skip=0, warmup=1, steps=1)
        recorder.__enter__()
        recorder.step()
        recorder.__enter__()  # training failed, and begins anew
        self.assertTrue(Profile.made[0].ended)
        recorder.step()
        self.assertFalse(recorder.written)
        recorder.step()
        self.assertTrue(recorder.written)
        recorder.__enter__()
        self.assertFalse(recorder.written)
        recorder.__exit__(None, None, None)

    def test_without_a_gpu_one_is_warned_before_training(self):
        sys.modules["torch"] = stand_in_torch(gpu=False)
        with self.assertWarnsRegex(dd.Warning, "sees no GPU"):
            with dd.record(self.path):
                pass
        self.assertEqual(Profile.made[0].activities, ["cpu"])
        sys.modules["torch"] = stand_in_torch()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with dd.record(self.path):
                pass

    def test_each_rank_writes_a_file_of_its_own(self):
        sys.modules["torch"] = stand_in_torch(ranks=3)
        recorder = dd.record(self.path + ".gz", skip=0, warmup=0, steps=1)
        for _ in range(2):
            with recorder:
                recorder.step()
            self.assertEqual(os.listdir(self.folder.name), ["run.rank2.json.gz"])
        self.assertEqual(os.path.basename(recorder.path), "run.rank2.json.gz")

    def test_under_the_recorder_nothing_else_records(self):
        os.environ["DAYDREAM_SESSION_ID"] = "1"
        try:
            with dd.record(self.path) as recorder:
                recorder.step()
            self.assertEqual(Profile.made, [])
            self.assertRaisesRegex(RuntimeError, "when the program has ended", recorder.trace)
        finally:
            del os.environ["DAYDREAM_SESSION_ID"]

    def test_a_name_that_the_profiler_cannot_write(self):
        self.assertRaises(ValueError, lambda: dd.record("run.ddtrace"))

    def test_lightning(self):
        module = types.ModuleType("pytorch_lightning")
        module.Callback = type("Callback", (), {})
        sys.modules["pytorch_lightning"] = module
        try:
            callback = dd.callbacks.lightning(self.path, skip=0, warmup=1, steps=1)
        finally:
            del sys.modules["pytorch_lightning"]
        self.assertIsInstance(callback, module.Callback)
        trainer = types.SimpleNamespace(global_step=7)  # of a checkpoint
        callback.on_train_start(trainer, None)
        for i in range(4):  # two batches are one step
            trainer.global_step += i % 2
            callback.on_train_batch_end(trainer, None, None, None, i)
            self.assertEqual(Profile.made[0].steps, (i + 1) // 2)
        callback.on_train_end(trainer, None)
        self.assertTrue(callback.recorder.written)

    def test_hugging_face(self):
        module = types.ModuleType("transformers")
        module.TrainerCallback = type("TrainerCallback", (), {})
        sys.modules["transformers"] = module
        try:
            callback = dd.callbacks.hugging_face(self.path, skip=0, warmup=1, steps=1)
        finally:
            del sys.modules["transformers"]
        callback.on_train_begin(None, None, None)
        for _ in range(2):
            callback.on_step_end(None, None, None, model=None)
        callback.on_train_end(None, None, None)
        self.assertTrue(callback.recorder.written)


if __name__ == "__main__":
    unittest.main()
