"""Runs in a Python that has PyTorch, with the installed package beside it: both live in one process, and
record() records so many steps of a real training loop. What a GPU does only a GPU can show."""

import gzip
import json
import os
import sys
import tempfile

try:
    import torch
except ImportError:
    print("skipped: no PyTorch in " + sys.executable)
    sys.exit(0)
import daydream as dd

EXAMPLES = os.path.join(os.environ["DAYDREAM_SOURCE"], "examples")
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "run.json.gz")
    with dd.record(path, skip=1, warmup=1, steps=3) as recorder:
        for i in range(6):
            optimizer.zero_grad()
            model(torch.randn(4, 8)).sum().backward()
            optimizer.step()
            recorder.step()
            assert recorder.written == (i >= 4), i
    with gzip.open(path) as f:
        written = json.load(f)
    events = written["traceEvents"] if isinstance(written, dict) else written
    steps = {e["name"] for e in events if e.get("name", "").startswith("ProfilerStep#")}
    assert len(steps) == 3, steps
    try:
        recorder.trace()
        raise AssertionError("a recording without a GPU was taken for one")
    except dd.Error as error:
        assert error.code in ("E0204", "E0301"), error
step = dd.load(os.path.join(EXAMPLES, "launch-bound-synthetic.ddtrace")).whatif("graphs").step_ms
assert step > 0
print("OK, PyTorch " + torch.__version__)
