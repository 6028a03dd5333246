"""Puts everything into torch, right after its import, and closes the record at exit."""

from __future__ import annotations

import atexit
import os
import sys
from typing import Any

from daydream_torch import compiled, facts, layers, phases, profiler, safely, sink, steps


def install(torch: Any) -> None:
    layers.setup(torch)
    patch = layers.Patch(torch)
    counter = steps.Steps(torch, patch)
    for part in (  # one that does not fit this version of PyTorch leaves the others working
        lambda: facts.install(torch, counter),
        lambda: phases.Phases(torch, counter),
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
        if torch.cuda.is_initialized() and not hasattr(sys, "last_type"):
            try:
                torch.cuda.synchronize()
            except Exception:
                pass
        sink.finish()

    atexit.register(finish)
