"""Marks the forward and backward pass of every module while labels are on.

torch.nn.Module.__call__ is replaced by a wrapper (a callable of C where the extension is there, so
that recursion goes as deep as without), which sees keyword arguments, keeps the marks
balanced over exceptions and leaves nn.Module its path without hooks. Backward: pre-hooks on the
graph nodes of a call's outputs (BACKWARD_ENTER) and inputs (BACKWARD_EXIT) that capture ints only.
Not seen: module.forward() called directly, ScriptModules, subclasses whose __call__ does not call
that of nn.Module.

Labels cost time, so they are on for a few steps only (steps.py); then the saved object is put back.
While compiled code runs the wrapper is away, too: TorchDynamo would trace it (compiled.py).
"""

from __future__ import annotations

import functools
import threading
from typing import Any, Callable, Dict, List, Optional, Tuple

from daydream_torch import imports, names, settings, sink

# Modules that save nn.Module.__call__ when they are imported; they should save the real one.
_SAVERS = (
    ("torch.fx._symbolic_trace", "_orig_module_call"),
    ("torch._dynamo.utils", "unpatched_nn_module_call"),
)


class Patch:
    """nn.Module.__call__ with marks, put in and taken out."""

    def __init__(self, torch: Any) -> None:
        self._class = torch.nn.Module
        self._original = torch.nn.Module.__call__
        self._wrapper = self._make_wrapper(_is_tracing_of(torch))
        self._wanted = False
        self._away = 0  # regions of compiled code that run now, on all threads
        self._lock = threading.RLock()  # of all that changes _wanted, _away or the class
        global _patch
        _patch = self
        for module, attribute in _SAVERS:
            imports.when_imported(module, functools.partial(self._give_original, attribute))

    def _make_wrapper(self, is_tracing: Callable[[], bool]) -> Callable[..., Any]:
        original, call = self._original, call_module
        # With layers=force TorchDynamo meets it, which can look into a function only.
        if sink.extension and settings.layers != "force":
            return sink.extension.wrap_call(original)

        @functools.wraps(original)
        def __call__(*args: Any, **kwargs: Any) -> Any:
            if is_tracing() or not self._wanted:
                return original(*args, **kwargs)
            return call(original, args, kwargs)

        return __call__

    def _give_original(self, attribute: str, module: Any) -> None:
        if getattr(module, attribute, None) is self._wrapper:
            setattr(module, attribute, self._original)

    def put(self) -> None:
        with self._lock:
            self._want(True)
            if not self._away:
                self._swap(self._original, self._wrapper)

    def take(self) -> None:
        with self._lock:
            self._want(False)
            self._swap(self._wrapper, self._original)

    def _want(self, wanted: bool) -> None:
        self._wanted = wanted
        if sink.extension:
            sink.extension.set_wanted(wanted)

    def _swap(self, old: Any, new: Any) -> None:
        """What somebody else has put there stays; ours below it is idle while it is not wanted."""
        if self._class.__call__ is old:
            self._class.__call__ = new

    def __enter__(self) -> None:
        """Away while compiled code is made or runs; with layers=force it stays and stands aside."""
        if settings.layers != "force":
            with self._lock:
                self._away += 1
                self._swap(self._wrapper, self._original)

    def __exit__(self, *exception: Any) -> None:
        if settings.layers != "force":
            with self._lock:
                self._away -= 1
                if self._wanted:
                    self.put()


def is_compiling_of(torch: Any) -> Callable[[], bool]:
    """Whether TorchDynamo traces right now; it knows this function (2.1 and later)."""
    return getattr(getattr(torch, "compiler", None), "is_compiling", lambda: False)


def _is_tracing_of(torch: Any) -> Callable[[], bool]:
    """The same for code that runs often; without the kinds of export that run the real code."""
    tracing = getattr(getattr(torch, "compiler", None), "is_dynamo_compiling", None)
    return tracing or is_compiling_of(torch)


# What follows is marks.c once more, for a Python without the extension.

# These bound the time for odd arguments.
_MAX_NODES, _MAX_LEVEL, _MAX_OBJECTS, _MAX_CHAIN = 32, 4, 256, 16
# Module calls inside of one another, from which on those below go without marks, and without the
# frames of ours that would end in a RecursionError before the program's own do.
_DEEPEST = 20
_patch: Optional["Patch"] = None
_calls: Dict[int, int] = {}
_on_root: Optional[Callable[[Any], None]] = None
_label: Callable[[Any, int], int] = names.label
_tensor: Any = ()
_leaf: Any = ()
_modes: Optional[Callable[[], int]] = None
_plain: Callable[[Any], bool] = bool
_plain_types: Dict[Any, bool] = {}


class _Thread(threading.local):
    top = 0
    first: Any = None  # node at which the open layer's first call inside ends
    depth = 0


_thread = _Thread()


def _watch_roots(action: Optional[Callable[[Any], None]]) -> None:
    global _on_root
    _on_root = action


def _call_module(function: Callable[..., Any], args: Tuple, kwargs: Dict[str, Any]) -> Any:
    if not args:  # the program shall see the message of the original
        return function(*args, **kwargs)
    module, thread = args[0], _thread
    if thread.depth == 0 and _on_root is not None and _on_root(module) is False:
        return function(*args, **kwargs)
    if thread.depth >= _DEEPEST and _patch is not None:
        with _patch:
            return function(*args, **kwargs)
    layer = names.ids.get(id(module))
    if layer is None:
        layer = _label(module, thread.top)
    thread.depth += 1
    try:
        return _call_layer(layer, function, args, kwargs)
    finally:
        thread.depth -= 1


def _call_layer(layer: int, function: Callable[..., Any], args: Tuple, kwargs: Dict) -> Any:
    if layer == 0:
        return function(*args, **kwargs)
    call = _calls.get(layer, 0)
    _calls[layer] = call + 1
    inputs: List[Any] = []
    outputs: List[Any] = []
    asks = _modes is None or not _modes()
    if asks:
        _visit((args, kwargs), 0, [0], sink.BACKWARD_EXIT, layer, call, inputs, inputs)
    mark, thread, end = sink.mark, _thread, None
    outer, outer_first = thread.top, thread.first
    thread.top, thread.first = layer, None
    mark(sink.LAYER_BEGIN, layer, call)
    try:
        try:
            result = function(*args, **kwargs)
        finally:
            mark(sink.LAYER_END, 0, 0)
        if asks:
            _visit(result, 0, [0], sink.BACKWARD_ENTER, layer, call, inputs, outputs)
        if outputs and not inputs:
            end = _exit_after_first(thread.first, outputs, layer, call)
        return result
    finally:
        thread.top = outer
        thread.first = outer_first if outer_first is not None or outer == 0 else end


def _visit(
    what: Any,
    level: int,
    count: List[int],
    kind: int,
    layer: int,
    call: int,
    skip: List[Any],
    seen: List[Any],
) -> None:
    """Hooks the node of every tensor in what and collects it in seen. Not the nodes of skip: an
    output that has the node of an input passed through."""
    count[0] += 1
    if what is None or level > _MAX_LEVEL + 1 or count[0] > _MAX_OBJECTS:
        return
    if isinstance(what, _tensor):
        if not _is_plain(type(what)):
            return
        try:
            node = what.grad_fn
            if node is not None and not any(node is n for n in skip):
                if len(seen) < _MAX_NODES:
                    seen.append(node)
                node.register_prehook(_hook(kind, layer, call))
        except Exception:  # a tensor that cannot say has no mark
            pass
    elif isinstance(what, (tuple, list)):
        for item in what:
            _visit(item, level + 1, count, kind, layer, call, skip, seen)
    elif isinstance(what, dict):
        for item in list(what.values()):
            _visit(item, level + 1, count, kind, layer, call, skip, seen)


def _is_plain(kind: Any) -> bool:
    known = _plain_types.get(kind)
    if known is None:
        if len(_plain_types) > _MAX_OBJECTS:  # types that come and go
            _plain_types.clear()
        known = _plain_types[kind] = _plain(kind)
    return known


def _exit_after_first(first: Any, outputs: List[Any], layer: int, call: int) -> Any:
    """Ends the backward pass of a call without input nodes, and returns the node that does.

    Such a call runs its nodes until the first of them that forward made. That is where its first
    inner call ends; without one, the end of the chain from its output."""
    try:
        node = first if first is not None else _chain_end(outputs)
        if node is not None:
            hook = _hook(sink.BACKWARD_EXIT, layer, call)
            node.register_hook(lambda _, __: hook(None))
        return node
    except Exception:
        return None


def _chain_end(outputs: List[Any]) -> Any:
    """None: the graph branches and nobody can say."""
    nodes = outputs
    for _ in range(_MAX_CHAIN):
        if len(nodes) != 1:
            return None
        following = [n for n, _ in nodes[0].next_functions]
        following = [n for n in following if n is not None and not isinstance(n, _leaf)]
        if not following:
            return nodes[0]
        nodes = following
    return None


def _hook(kind: int, layer: int, call: int) -> Callable[[Any], None]:
    mark = sink.mark
    return lambda _: mark(kind, layer, call)


call_module = sink.extension.call_module if sink.extension else _call_module
call_layer = sink.extension.call_layer if sink.extension else _call_layer
watch_roots = sink.extension.watch_roots if sink.extension else _watch_roots


def _no_label(module: Any, parent: int) -> int:
    return 0


def _plain_of(torch: Any) -> Callable[[Any], bool]:
    """Whether asking a tensor of a type for its node runs code of the program only if that is
    PyTorch's own: a __torch_function__ of the program would be called, and could count the calls."""
    default = getattr(torch.Tensor.__torch_function__, "__func__", None)
    disabled = getattr(torch._C, "_disabled_torch_function_impl", None)

    def plain(kind: Any) -> bool:
        own = getattr(kind, "__torch_function__", None)
        return own is disabled or getattr(own, "__func__", own) is default

    return plain


def setup(torch: Any) -> None:
    global _label, _tensor, _leaf, _plain, _modes
    if settings.layers == "off":
        _label = _no_label
    names.is_jit_tracing = torch._C._is_tracing
    _tensor, _leaf = torch.Tensor, torch._C._functions.AccumulateGrad
    _plain = _plain_of(torch)
    _modes = getattr(torch._C, "_len_torch_function_stack", None)
    if sink.extension:
        base = getattr(torch._C, "TensorBase", None) or getattr(torch._C, "_TensorBase")
        sink.extension.setup(names.ids, _label, base, _leaf, _plain, _modes)
