"""Marks layers, phases and steps of a PyTorch program for daydream's recorder.

Nothing happens until the program imports torch: arm() only puts a finder into sys.meta_path. See
`arm` for what is installed then, and tracer/daydream_mark.h for what the marks mean.
"""

import functools
import os
import sys


def arm() -> None:
    """Marks torch from its import on (at once if it is there). Only within `daydream trace`, and
    once in a process."""
    session = os.environ.get("DAYDREAM_SESSION_ID")
    if not session or not os.environ.get("DAYDREAM_INJECT") or session in _armed:
        return
    _armed.add(session)
    from daydream_torch import imports, settings

    if not settings.records_rank():
        return

    imports.when_imported("torch", _install)


def _install(torch) -> None:
    from daydream_torch import install

    install.install(torch)


def complain(what: str) -> None:
    """One line on stderr; the same line only once."""
    if what not in _complaints:
        _complaints.add(what)
        sys.stderr.write("daydream: " + what + "\n")


def safely(function):
    """The function, but an error in it is told once and not raised into the traced program."""

    name = getattr(function, "__qualname__", None)  # a functools.partial has none

    def safe(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except Exception as error:
            complain("%s failed: %r" % (name or repr(function), error))
            return None

    return safe if name is None else functools.wraps(function)(safe)


_armed = set()
_complaints = set()
