"""Counts training steps and decides when layers are labelled.

A STEP mark says that a step begins. Steps follow one source, the first of these that the program
has:
  1. prof.step() of a torch.profiler.profile with a schedule, started before any optimizer stepped,
     for as long as it runs
  2. the end of step() of the optimizer that stepped first, if there was a backward pass since the
     last one: several calls of step() after one backward pass (ZeRO-3 steps for each group of its
     parameters) are one. Another optimizer (GAN) does not count; gradient accumulation is one step
     because its optimizer steps once
  3. without optimizer and backward pass (inference): calls of one root module, from its fourth on
A source that falls silent while another optimizer goes on stepping gives way to that one.
A replay of a CUDA graph steps as the optimizers did whose steps it captured.
The number of a step is that of its mark: 1, 2, 3, ..., also when the source changes. Step 0 has no
mark of its own: it lasts from the start of the program to the first mark.

Layers are marked during each capture of a CUDA graph, too, whose kernels could not be told
otherwise; that labels no step.

Layers are labelled in step 0, as nobody knows yet whether there will be a mark, and in the steps
[settings.first_labelled, settings.warmup), always whole steps. LABELS_BEGIN of step 0 comes with
its first layer. Taking the wrapper out while module calls are open is fine: each of them ends its
own mark.
"""

from __future__ import annotations

import contextlib
import functools
import threading
import weakref
from typing import Any, Callable, Iterable, Iterator, List, Optional

from daydream_torch import names, safely, settings, sink
from daydream_torch.layers import Patch, is_compiling_of, watch_roots

# Only such a capture follows the steps; with another one nobody knows which steps it will hold.
_ALWAYS = settings.layers == "force" or settings.capture not in ("steps", "none")
_CALLS_WITHOUT_TRAINING = 3
# Steps of another optimizer without one of the source, beyond twice as many as there ever were,
# after which the source is silent. More than the critic's steps in one iteration of a WGAN (5).
_PATIENCE = 8
# Steps without a backward pass that we see, after which we believe that it runs past us.
_BLIND = 64


class _Thread(threading.local):
    stepping = 0
    in_root = False  # a call of the module whose calls are steps
    captured: Optional[List[Any]] = None  # optimizers that stepped in the CUDA graph under capture


class Steps:
    def __init__(self, torch: Any, patch: Patch) -> None:
        self.number = 0
        self.labels_on = self._may_label = settings.layers != "off"
        self._captures = 0
        self._labels_told = False
        self.on_step: List[Callable[[int], None]] = []
        self._torch = torch
        self._patch = patch
        self._thread = _Thread()
        self._source: Optional["weakref.ref[Any]"] = None
        self._profiler: Optional["weakref.ref[Any]"] = None
        self._training = False  # an optimizer or a backward pass was seen
        self._backwards = 0  # that were seen
        self._backward = False  # one since the last step
        self._without = 0  # steps in a row without one
        self._others = self._most_others = 0  # steps of others since the source's last; so far
        self._calls: Any = weakref.WeakKeyDictionary()
        self._undo_root: Optional[Callable[[], None]] = None
        patch.put()
        names.on_new_root.append(lambda name, root: self.tell_labels())
        watch_roots(self._root_called)

    # What the program does.

    def training(self) -> None:
        if not self._training:
            self._training = True
            watch_roots(None)
            self._calls.clear()

    def backward(self) -> None:
        """A backward pass begins."""
        self.training()
        self._backwards += 1
        self._backward = True

    @contextlib.contextmanager
    def stepping(self, optimizer: Any) -> Iterator[None]:
        """Around a step of the optimizer; within another (GradScaler, super()) it does not count."""
        self._thread.stepping += 1
        try:
            yield
        finally:
            self._thread.stepping -= 1
        if self._thread.stepping != 0:
            return
        captured = self._thread.captured
        if captured is None:
            self._optimizer_stepped(optimizer)
        elif optimizer not in captured:
            captured.append(optimizer)

    def capture_began(self) -> None:
        self._thread.captured = []
        self._captures += 1
        if self._may_label:
            self._patch.put()

    def capture_ended(self) -> List["weakref.ref[Any]"]:
        """The optimizers that stepped since it began; none of these steps has run yet."""
        captured, self._thread.captured = self._thread.captured, None
        self._captures -= 1
        if not self.labels_on and self._captures == 0:
            self._patch.take()
        return [weakref.ref(optimizer) for optimizer in captured or ()]

    def replayed(self, graph: Any, captured: Iterable["weakref.ref[Any]"]) -> None:
        """The graph stands for optimizers that are gone."""
        self._backward = True  # it may hold one
        steppers = [reference() for reference in captured]
        for stepper in dict.fromkeys(graph if s is None else s for s in steppers):
            self._optimizer_stepped(stepper)

    def profiler_started(self, profiler: Any) -> None:
        if getattr(profiler, "record_steps", False) and self._owner() is None:
            self._take_source(profiler, "torch.profiler")

    def profiler_stepped(self, profiler: Any) -> None:
        if self._owner() is profiler:
            self._source_stepped()

    def profiler_stopped(self, profiler: Any) -> None:
        if self._owner() is profiler:
            self._source = None

    def _optimizer_stepped(self, optimizer: Any) -> None:
        self.training()
        if self._undo_root is not None:
            self._undo_root()
            self._undo_root = self._source = None
        if not self._follows_backward():
            return
        if self._owner() is None or (self._owner() is not optimizer and self._is_silent()):
            self._take_source(optimizer, type(optimizer).__name__)
        if self._owner() is optimizer:
            self._backward = False
            self._source_stepped()

    def _source_stepped(self) -> None:
        self._most_others = max(self._most_others, self._others)
        self._others = 0
        self._begin()

    def _follows_backward(self) -> bool:
        if self._backward:
            self._without = 0
            return True
        self._without += 1
        return self._backwards == 0 or self._without > _BLIND

    def _is_silent(self) -> bool:
        """The source has not stepped while another did, for longer than ever."""
        self._others += 1
        return self._others > 2 * self._most_others + _PATIENCE

    @safely
    def _root_called(self, module: Any) -> bool:
        """False: this call is not marked any more."""
        if self._owner() is not None:
            return True
        calls = self._calls[module] = self._calls.get(module, -1) + 1
        if calls == _CALLS_WITHOUT_TRAINING:
            watch_roots(None)
            self._take_source(module, "calls of " + names.class_of(module))
            self._follow(module)
            self._begin()
            return self.labels_on
        return True

    def _follow(self, root: Any) -> None:
        """Counts the later calls of the root: its class gets a __call__ of its own. A call within
        one is a part of it."""
        owner, is_compiling, thread = type(root), is_compiling_of(self._torch), self._thread
        had = "__call__" in vars(owner)
        original = vars(owner).get("__call__")

        @functools.wraps(owner.__call__)
        def __call__(module: Any, *args: Any, **kwargs: Any) -> Any:
            step = not (is_compiling() or thread.in_root or self._owner() is not module)
            if step:
                self._begin()
                thread.in_root = True
            try:
                # Looked up behind _begin(), which may have set another nn.Module.__call__.
                if had:
                    return original(module, *args, **kwargs)
                return super(owner, module).__call__(*args, **kwargs)
            finally:
                if step:
                    thread.in_root = False

        def undo() -> None:
            if vars(owner).get("__call__") is __call__:
                if had:
                    owner.__call__ = original
                else:
                    del owner.__call__

        owner.__call__ = __call__
        self._undo_root = undo

    # The source and the marks.

    def _owner(self) -> Optional[Any]:
        return None if self._source is None else self._source()

    def _take_source(self, owner: Any, what: str) -> None:
        self._source = weakref.ref(owner)
        self._others = self._most_others = 0
        sink.note("steps", what)

    def tell_labels(self) -> None:
        """To be called before the first layer mark."""
        if self.labels_on and not self._labels_told:
            self._labels_told = True
            sink.mark(sink.LABELS_BEGIN, 0, 0)

    @safely
    def _begin(self) -> None:
        self.number += 1
        inside = settings.first_labelled <= self.number < settings.warmup
        self.labels_on = self._may_label and (_ALWAYS or inside)
        if not self.labels_on:
            if self._labels_told:
                self._labels_told = False
                sink.mark(sink.LABELS_END, 0, 0)
            if self._captures == 0:
                self._patch.take()
        sink.step(self.number)
        if self.labels_on:
            self.tell_labels()
            self._patch.put()
        for action in list(self.on_step):
            action(self.number)
