"""Records some steps of the PyTorch program that this runs in."""

from __future__ import annotations

import os
import sys
import warnings
from typing import Any, Union

from daydream import errors
from daydream.trace import Trace, load


def record(
    path: Union[str, "os.PathLike[str]"],
    *,
    skip: int = 5,
    warmup: int = 2,
    steps: int = 6,
    shapes: bool = True,
) -> Recorder:
    """A context manager around a training loop; call its step() after each step.

        with dd.record("run.json.gz") as recorder:
            for batch in loader:
                train_step(batch)
                recorder.step()
        recorder.trace().whatif("amp,fuse")

    path: the file to write, .json or .json.gz; of several ranks of torch.distributed each has its own,
    run.rank0.json.gz for run.json.gz. skip: steps that are not looked at. warmup: steps while the
    profiler gets going. steps: recorded ones, 5 or more for intervals. shapes: record the shapes of
    operators, which many optimizations need.

    In a program that was started by `daydream trace`, that recorder is at work already: it finds the
    steps itself, nothing is written to `path`, and trace() raises RuntimeError. Otherwise
    torch.profiler records: CPU, and the GPU where there is one. Without a GPU there is no GPU work to
    predict anything of: that is a Warning when the block begins, and trace() raises Error. Imports
    torch.
    """
    return Recorder(path, skip, warmup, steps, shapes)


class Recorder:
    """What `record` returns."""

    def __init__(self, path, skip=5, warmup=2, steps=6, shapes=True):
        self.path = self._asked = os.fspath(path)
        """The file; of several ranks that of this one, once it is written."""
        if not self.path.endswith((".json", ".json.gz")):
            raise ValueError("%s: the profiler writes .json or .json.gz" % self.path)
        if steps < 1 or skip < 0 or warmup < 0:
            raise ValueError("steps is 1 or more, skip and warmup are 0 or more")
        self._schedule = (skip, warmup, steps)
        self._shapes = shapes
        self._profile = None
        self._steps = 0
        self.written = False
        """Whether all recorded steps are in the file."""

    @property
    def by_daydream(self) -> bool:
        """Whether `daydream trace` records this process."""
        return bool(os.environ.get("DAYDREAM_SESSION_ID"))

    def __enter__(self) -> Recorder:
        """Begins to count steps, anew each time. ImportError without PyTorch."""
        self.__exit__(None, None, None)  # a Trainer whose training failed has not
        self._steps, self.written = 0, False
        if self.by_daydream:
            return self
        try:
            from torch import cuda, profiler
        except ImportError as error:
            raise ImportError(
                "daydream.record() records with torch.profiler, which %s cannot import (%s). Install "
                "PyTorch there, or record without it: daydream trace -o run -- python train.py"
                % (sys.executable or "this Python", error)
            ) from error

        activities = [profiler.ProfilerActivity.CPU]
        if cuda.is_available():
            activities.append(profiler.ProfilerActivity.CUDA)
        else:
            warnings.warn(
                "PyTorch sees no GPU here: what is recorded is of the CPU alone, and predicts nothing",
                errors.Warning,
                stacklevel=2,
            )
        skip, warmup, steps = self._schedule
        self._profile = profiler.profile(
            activities=activities,
            record_shapes=self._shapes,
            schedule=profiler.schedule(wait=skip, warmup=warmup, active=steps, repeat=1),
            on_trace_ready=self._write,
        )
        self._profile.__enter__()
        return self

    def _write(self, profile):
        if self._steps < sum(self._schedule):
            return  # it ends in the middle of a step
        profile.export_chrome_trace(self._place())
        self.written = True

    def _place(self):
        """`path`, or that of this rank."""
        from torch import distributed

        if distributed.is_available() and distributed.is_initialized():
            if distributed.get_world_size() > 1:
                name, end = self._asked.rsplit(".json", 1)
                self.path = "%s.rank%d.json%s" % (name, distributed.get_rank(), end)
        return self.path

    def step(self) -> None:
        """After each step of the program."""
        self._steps += 1
        if self._profile is not None:
            self._profile.step()

    def __exit__(self, *error):
        """Ends the recording, early or not. What was recorded is written once all steps are there;
        with fewer, nothing is. An exception of the block goes on."""
        if self._profile is not None:
            profile, self._profile = self._profile, None
            profile.__exit__(*error)

    def trace(self, **arguments: Any) -> Trace:
        """load() of what was recorded. RuntimeError while nothing was written."""
        if self.by_daydream:
            raise RuntimeError("`daydream trace` writes the recording when the program has ended")
        if not self.written:
            skip, warmup, steps = self._schedule
            raise RuntimeError(
                "%s is not written yet: call step() %d times within the block, or ask for fewer steps"
                % (self.path, skip + warmup + steps)
            )
        return load(self.path, **arguments)
