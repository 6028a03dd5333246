"""The connection to the recorder: marks go to libdaydream_inject.so (tracer/daydream_mark.h).

Through the C extension beside that library where there is one, else through ctypes: the same
marks, only dearer. Importing this module connects; it raises OSError where that is impossible.
"""

from __future__ import annotations

import ctypes
import importlib.machinery
import importlib.util
import os
import sys
from typing import Any, Dict, Set

# enum daydream_mark_kind
RANGE_BEGIN = 1
RANGE_END = 2
STEP = 3
POINT = 4
LAYER_BEGIN = 5
LAYER_END = 6
BACKWARD_ENTER = 7
BACKWARD_EXIT = 8
LABELS_BEGIN = 9
LABELS_END = 10
RANK = 11
NOTE = 12


def _load_extension(library: str) -> Any:
    """The extension module, or None. Its ABI is that of CPython with a global lock."""
    path = os.path.join(os.path.dirname(library), "_daydream_marks.abi3.so")
    if sys.implementation.name != "cpython" or "t" in getattr(sys, "abiflags", ""):
        return None
    if os.environ.get("DAYDREAM_NO_EXTENSION") or not os.path.exists(path):
        return None
    try:
        loader = importlib.machinery.ExtensionFileLoader("_daydream_marks", path)
        spec = importlib.util.spec_from_loader("_daydream_marks", loader)
        module = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
        module.connect(library)
        return module
    except ImportError:
        return None


_path = os.environ["DAYDREAM_INJECT"]
# PyDLL keeps the interpreter's lock over a call, which is right for calls this short. finish()
# writes files, and a step may switch CUPTI on or off: these let others run.
_library = ctypes.PyDLL(_path)
_library.daydream_name.argtypes = [ctypes.c_char_p]
_library.daydream_name.restype = ctypes.c_uint32
_library.daydream_mark.argtypes = [ctypes.c_uint32, ctypes.c_uint32, ctypes.c_int64]
_library.daydream_mark.restype = None

extension = _load_extension(_path)
mark = extension.mark if extension else _library.daydream_mark
_unlocked = ctypes.CDLL(_path)
_unlocked.daydream_mark.argtypes = _library.daydream_mark.argtypes
_unlocked.daydream_mark.restype = None
finish = _unlocked.daydream_finish
_ids: Dict[str, int] = {}
_noted: Set[str] = set()


def name(text: str) -> int:
    """The id of a text. 0: nothing is being recorded."""
    known = _ids.get(text)
    if known is None:
        known = _library.daydream_name(text.encode("utf-8", "replace").replace(b"\0", b"?"))
        if known:
            _ids[text] = known
    return known


def is_recording() -> bool:
    return _library.daydream_name(b"torch") != 0


def step(number: int) -> None:
    """A step begins. The name says who counts, as a program may have steps from elsewhere, too."""
    _unlocked.daydream_mark(STEP, name("torch"), number)


def note(key: str, value: Any) -> None:
    """A fact about the process, once."""
    text = "%s=%s" % (key, value)
    if text not in _noted:
        _noted.add(text)
        mark(NOTE, name(text), 0)
