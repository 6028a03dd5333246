"""Puts everything into torch, right after its import, and closes the record at exit."""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
from typing import Any, Callable

from daydream_torch import compiled, facts, graphs, layers, phases, profiler, safely, sink, steps

# How long the end of the program waits for the GPU: longer than the work that a program queues
# ahead, shorter than anybody takes for a hang. Chosen, not measured.
LIMIT_S = 3.0


def install(torch: Any) -> None:
    layers.setup(torch)
    patch = layers.Patch(torch)
    counter = steps.Steps(torch, patch)
    for part in (  # one that does not fit this version of PyTorch leaves the others working
        lambda: facts.install(torch, counter),
        lambda: phases.Phases(torch, counter),
        lambda: graphs.install(torch, counter),
        lambda: compiled.install(torch, counter, patch),
        lambda: profiler.install(torch, counter),
    ):
        safely(part)()
    _finish_at_exit(torch)


def _finish_at_exit(torch: Any) -> None:
    """Python ends itself by SIGINT after Ctrl-C and skips the C library's atexit: so here, too."""
    owner = os.getpid()

    def finish() -> None:
        if os.getpid() != owner:
            return
        # After an exception the GPU may never become idle: another rank may wait for us.
        if torch.cuda.is_initialized() and not hasattr(sys, "last_type") and sink.is_recording():
            safely(_wait_for_gpu)(torch.cuda)
        sink.finish()

    atexit.register(finish)


def _wait_for_gpu(cuda: Any) -> None:
    """Until the work of this thread's device is done, but not longer than LIMIT_S."""
    # Another thread is on device 0 whatever set_device said, and would make a context there.
    device = cuda.current_device()

    def quietly(wait: Callable[[], Any]) -> None:
        try:
            wait()
        except Exception:
            pass

    thread = threading.Thread(target=quietly, args=(lambda: cuda.synchronize(device),), daemon=True)
    try:
        thread.start()
        thread.join(LIMIT_S)
    except RuntimeError:  # Python 3.12 starts no thread at exit
        quietly(lambda: _wait_for_default_stream(cuda))  # this thread: its device


def _wait_for_default_stream(cuda: Any) -> None:
    deadline = time.monotonic() + LIMIT_S
    event = cuda.Event()
    event.record(cuda.default_stream())
    while not event.query() and time.monotonic() < deadline:
        time.sleep(0.001)
