"""A script that uses torch.profiler itself.

Two recorders of the GPU in one process disturb each other: PyTorch's would take CUPTI's buffers and
clock away from daydream's. So the script's profiler gets the CPU side only, with one warning.
"""

from __future__ import annotations

import functools
import inspect
from typing import Any

from daydream_torch import complain, safely
from daydream_torch.steps import Steps

_WARNING = (
    "torch.profiler records only the CPU in this run, because daydream records the GPU"
    " (the script's own GPU profile is empty)"
)


def install(torch: Any, steps: Steps) -> None:
    _without_gpu(torch.autograd.profiler.profile)
    profile = torch.profiler.profile
    _then(profile, "start", steps.profiler_started)
    _then(profile, "step", steps.profiler_stepped)
    _then(profile, "stop", steps.profiler_stopped)


def _without_gpu(profile: Any) -> None:
    original = profile.__init__
    signature = inspect.signature(original)

    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        # use_cuda: a bool until 2.x; use_device: "cuda" since 2.1.
        try:
            bound = signature.bind(self, *args, **kwargs)
        except TypeError:  # the program shall see the message of the original
            return original(self, *args, **kwargs)
        given = bound.arguments
        if given.get("use_cuda") or given.get("use_device") == "cuda":
            complain(_WARNING)
            for key, value in (("use_cuda", False), ("use_device", None)):
                if key in given:
                    given[key] = value
            if "use_cpu" in signature.parameters:
                given["use_cpu"] = True
        original(*bound.args, **bound.kwargs)

    profile.__init__ = __init__


def _then(owner: Any, method: str, action: Any) -> None:
    original = getattr(owner, method)

    @functools.wraps(original)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, *args, **kwargs)
        safely(action)(self)
        return result

    setattr(owner, method, wrapper)
