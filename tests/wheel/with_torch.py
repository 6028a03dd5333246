"""Runs in a Python that has PyTorch, with the installed package beside it: both live in one process, and
record() records so many steps of a real training loop. What a GPU does only a GPU can show."""

import gzip
import importlib.util
import json
import os
import sys
import tempfile
import warnings

try:
    import torch
except ImportError:
    print("skipped: no PyTorch in " + sys.executable)
    sys.exit(0)
import daydream as dd

EXAMPLES = os.path.join(os.environ["DAYDREAM_SOURCE"], "examples")
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

HOW = {"skip": 1, "warmup": 1, "steps": 3}


def check(recorder, mark):
    """There are three steps, each with `mark` in it, and no GPU work to predict anything of."""
    with gzip.open(recorder.path) as f:
        written = json.load(f)
    events = written["traceEvents"] if isinstance(written, dict) else written
    steps = {e["name"]: e for e in events if e.get("name", "").startswith("ProfilerStep#")}
    assert len(steps) == 3, steps
    for step in steps.values():
        inside = [e for e in events if e.get("name", "").startswith(mark)
                  and step["ts"] <= e["ts"] <= step["ts"] + step["dur"]]
        assert len(inside) == 1, (step, inside)
    try:
        recorder.trace()
        raise AssertionError("a recording without a GPU was taken for one")
    except dd.Error as error:
        assert error.code in ("E0204", "E0301"), error


def of_a_loop(folder):
    path = os.path.join(folder, "run.json.gz")
    with dd.record(path, **HOW) as recorder:
        for i in range(6):
            optimizer.zero_grad()
            model(torch.randn(4, 8)).sum().backward()
            optimizer.step()
            recorder.step()
            assert recorder.written == (i >= 4), i
    check(recorder, "Optimizer.step#")
    with dd.record(os.path.join(folder, "early.json.gz"), **HOW) as early:
        for i in range(4):
            early.step()
    assert not early.written and not os.path.exists(early.path)


DATA = [{"x": torch.randn(8)} for _ in range(64)]


def of_lightning(folder):
    from lightning.pytorch import LightningModule, Trainer

    class Module(LightningModule):
        def __init__(self):
            super().__init__()
            self.model = model

        def training_step(self, batch, index):
            return self.model(batch["x"]).pow(2).mean()

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    callback = dd.callbacks.lightning(os.path.join(folder, "lightning.json.gz"), **HOW)
    trainer = Trainer(
        max_epochs=2, accumulate_grad_batches=2, accelerator="cpu", callbacks=[callback], logger=False,
        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(Module(), torch.utils.data.DataLoader(DATA, batch_size=8))
    check(callback.recorder, "Optimizer.step#")


def of_hugging_face(folder):
    from transformers import Trainer, TrainingArguments

    class Module(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, x=None):
            return {"loss": self.model(x).pow(2).mean()}

    callback = dd.callbacks.hugging_face(os.path.join(folder, "trainer.json.gz"), **HOW)
    arguments = TrainingArguments(
        output_dir=folder, num_train_epochs=2, per_device_train_batch_size=8, use_cpu=True,
        gradient_accumulation_steps=2, report_to=[], save_strategy="no", logging_strategy="no",
        disable_tqdm=True, remove_unused_columns=False)
    Trainer(model=Module(), args=arguments, train_dataset=DATA, callbacks=[callback]).train()
    check(callback.recorder, "Optimizer.step#")


done = ["PyTorch " + torch.__version__]
with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
    warnings.simplefilter("ignore")
    of_a_loop(folder)
    for name, package, record in (("Lightning", "lightning", of_lightning),
                                  ("Trainer of Hugging Face", "transformers", of_hugging_face)):
        if importlib.util.find_spec(package):
            record(folder)
            done.append(name)
step = dd.load(os.path.join(EXAMPLES, "launch-bound-synthetic.ddtrace")).whatif("graphs").step_ms
assert step > 0
print("OK, " + ", ".join(done))
