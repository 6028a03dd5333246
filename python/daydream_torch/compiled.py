"""torch.compile: one layer "compiled:NAME" for each compiled region.

The wrapper of nn.Module.__call__ is away while torch.compile and compiled code run, so TorchDynamo
sees an untouched nn.Module: no graph break, no guard, no recompilation because of us. The region
itself is called by a wrapper outside of what is traced. (module.compile() calls torch.compile.)
"""

from __future__ import annotations

import functools
from typing import Any, Callable

from daydream_torch import imports, layers, names, sink
from daydream_torch.steps import Steps


def install(torch: Any, steps: Steps, patch: layers.Patch) -> None:
    original = getattr(torch, "compile", None)  # since 2.0
    if original is None:
        return
    is_compiling = layers.is_compiling_of(torch)

    @functools.wraps(original)
    def compile(*args: Any, **kwargs: Any) -> Any:
        if is_compiling():
            return original(*args, **kwargs)
        with patch:
            made = original(*args, **kwargs)
        what = args[0] if args else kwargs.get("model")
        return made if what is None else mark_region(made, what)  # None: used as a decorator

    def mark_region(made: Any, what: Any) -> Any:
        if made is what:  # disable=True
            return made
        name = "compiled:" + _title(what)
        if isinstance(made, torch.nn.Module):
            made.forward = region(made.forward, name)
            return made
        return region(made, name)

    def region(function: Callable[..., Any], name: str) -> Callable[..., Any]:
        @functools.wraps(function)
        def run_region(*args: Any, **kwargs: Any) -> Any:
            if is_compiling() or not steps.labels_on:
                return function(*args, **kwargs)
            steps.tell_labels()
            with patch:
                return layers.call_layer(sink.name(name), function, args, kwargs)

        return run_region

    def away(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def run_away(*args: Any, **kwargs: Any) -> Any:
            if is_compiling() or not steps.labels_on:
                return function(*args, **kwargs)
            with patch:
                return function(*args, **kwargs)

        return run_away

    def keep_away(eval_frame: Any) -> None:
        """torch._dynamo.explain and optimize make a region without torch.compile: it shall hold and
        meet the real nn.Module.__call__, too."""
        made = getattr(eval_frame, "OptimizedModule", None)
        initialize = getattr(made, "_initialize", None)
        if initialize is None:
            return

        @functools.wraps(initialize)
        def _initialize(region: Any, *args: Any, **kwargs: Any) -> None:
            with patch:
                initialize(region, *args, **kwargs)
            region.forward = away(region.forward)

        made._initialize = _initialize

    torch.compile = compile
    imports.when_imported("torch._dynamo.eval_frame", keep_away)


def _title(what: Any) -> str:
    module = getattr(what, "__self__", what)  # module.compile() compiles a bound method
    if hasattr(module, "_modules"):
        return names.class_of(module)
    return getattr(what, "__qualname__", type(what).__name__)
