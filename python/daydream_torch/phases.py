"""Marks what a step does beside layers: ranges named as the PyTorch profiler names them.

Each is a wrapper around a function of torch that stays for the whole run (some twenty marks a step)
and stands aside while TorchDynamo traces. What the profiler has no name for:
"## recompute ##": the second forward pass of checkpointing; "Optimizer.clip_grad_norm_",
"Optimizer.unscale_#GradScaler.unscale_", "Optimizer.scaled_step#GradScaler.step",
"Optimizer.update#GradScaler.update": they belong to the optimizer phase.
"""

from __future__ import annotations

import functools
from typing import Any, Callable, Union

from daydream_torch import safely, sink
from daydream_torch.imports import when_imported
from daydream_torch.layers import is_compiling_of
from daydream_torch.steps import Steps

Title = Union[str, Callable[[Any], str]]


class Phases:
    def __init__(self, torch: Any, steps: Steps) -> None:
        self._is_compiling = is_compiling_of(torch)
        self._steps = steps
        self._known_optimizers: set = set()
        self._autograd(torch)
        self._optimizer(torch)
        when_imported("torch.nn.utils.clip_grad", self._clip_grad)
        when_imported("torch.utils.checkpoint", self._checkpoint)
        when_imported("torch.utils.data.dataloader", self._loader)
        # The class of torch.amp since 2.3, which that of torch.cuda.amp derives from.
        amp = getattr(getattr(torch, "amp", None), "GradScaler", None)
        self._scaler(amp or torch.cuda.amp.GradScaler)

    def _replace(self, owner: Any, attribute: str, title: Title, before: Any = None) -> None:
        """owner.attribute runs in a range; title: a text, or a function of the first argument."""
        original, is_compiling = getattr(owner, attribute), self._is_compiling

        @functools.wraps(original)
        def ranged(*args: Any, **kwargs: Any) -> Any:
            if is_compiling():
                return original(*args, **kwargs)
            if before is not None:
                before()
            text = title if isinstance(title, str) else title(args[0])
            sink.mark(sink.RANGE_BEGIN, sink.name(text), 0)
            try:
                return original(*args, **kwargs)
            finally:
                sink.mark(sink.RANGE_END, 0, 0)

        setattr(owner, attribute, ranged)

    def _autograd(self, torch: Any) -> None:
        for function in ("backward", "grad"):
            self._replace(torch.autograd, function, "## backward ##", self._steps.backward)

    def _clip_grad(self, module: Any) -> None:
        import torch

        self._replace(module, "clip_grad_norm_", "Optimizer.clip_grad_norm_")
        torch.nn.utils.clip_grad_norm_ = module.clip_grad_norm_

    def _loader(self, module: Any) -> None:
        self._replace(
            module._BaseDataLoaderIter,
            "__next__",
            lambda it: "enumerate(DataLoader)#%s.__next__" % type(it).__name__,
        )

    # Checkpointing calls the function it is given again in the backward pass.

    def _checkpoint(self, module: Any) -> None:
        original, is_compiling = module.checkpoint, self._is_compiling

        @functools.wraps(original)
        def checkpoint(*args: Any, **kwargs: Any) -> Any:
            if is_compiling() or not args or not callable(args[0]):
                return original(*args, **kwargs)
            return original(_ranged_from_second_call(args[0]), *args[1:], **kwargs)

        module.checkpoint = checkpoint

    # Optimizers: step() belongs to the class that defines it, so that is where it is wrapped.

    def _optimizer(self, torch: Any) -> None:
        base = torch.optim.Optimizer
        original = base.__init__
        self._replace(
            base, "zero_grad", lambda o: "Optimizer.zero_grad#%s.zero_grad" % type(o).__name__
        )

        @functools.wraps(original)
        def __init__(optimizer: Any, *args: Any, **kwargs: Any) -> None:
            original(optimizer, *args, **kwargs)
            if not self._is_compiling():
                safely(self._see_optimizer)(optimizer)

        base.__init__ = __init__

    def _see_optimizer(self, optimizer: Any) -> None:
        self._steps.training()
        kind = type(optimizer)
        if kind in self._known_optimizers:
            return
        self._known_optimizers.add(kind)
        owner = next(c for c in kind.__mro__ if "step" in vars(c))
        if not getattr(owner.step, "_daydream", False):
            self._replace(owner, "step", lambda o: "Optimizer.step#%s.step" % type(o).__name__)
            self._replace_step(owner, "step", lambda o, *args, **kwargs: o)
            owner.step._daydream = True
        facts = ["%s=%s" % (k, optimizer.defaults[k]) for k in _FLAGS if k in optimizer.defaults]
        sink.note("optimizer", " ".join([kind.__name__] + facts))

    def _replace_step(self, owner: Any, attribute: str, optimizer_of: Callable[..., Any]) -> None:
        original, is_compiling, steps = getattr(owner, attribute), self._is_compiling, self._steps

        @functools.wraps(original)
        def step(*args: Any, **kwargs: Any) -> Any:
            if is_compiling():
                return original(*args, **kwargs)
            with steps.stepping(optimizer_of(*args, **kwargs)):
                return original(*args, **kwargs)

        setattr(owner, attribute, step)

    def _scaler(self, scaler: Any) -> None:
        self._replace(scaler, "unscale_", "Optimizer.unscale_#GradScaler.unscale_")
        self._replace(scaler, "update", "Optimizer.update#GradScaler.update")
        self._replace(scaler, "step", "Optimizer.scaled_step#GradScaler.step")
        # A step that the scaler skips, because a gradient overflowed, is a step all the same.
        self._replace_step(scaler, "step", lambda scaler, optimizer, *args, **kwargs: optimizer)


_FLAGS = ("foreach", "fused", "capturable")


def _ranged_from_second_call(function: Callable[..., Any]) -> Callable[..., Any]:
    first = True

    def ranged(*args: Any, **kwargs: Any) -> Any:
        nonlocal first
        if first:
            first = False
            return function(*args, **kwargs)
        sink.mark(sink.RANGE_BEGIN, sink.name("## recompute ##"), 0)
        try:
            return function(*args, **kwargs)
        finally:
            sink.mark(sink.RANGE_END, 0, 0)

    return ranged
