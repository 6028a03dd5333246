"""What the tests of python/ share: running Python under a session, and reading its marks.

Every test file calls main(). In-process tests use armed() first, which makes this very process a
recorded one, and then marks(); tests of whole programs use run(). The marks come from mark_log.c.
"""

import atexit
import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
import traceback
import unittest
from collections import namedtuple

PYTHON_DIR = os.environ["DAYDREAM_PYTHON_DIR"]
LIBRARY = os.environ["MARK_LIBRARY"]

KINDS = (
    "?", "RANGE_BEGIN", "RANGE_END", "STEP", "POINT", "LAYER_BEGIN", "LAYER_END",
    "BACKWARD_ENTER", "BACKWARD_EXIT", "LABELS_BEGIN", "LABELS_END", "RANK", "NOTE",
)  # fmt: skip
Mark = namedtuple("Mark", "kind name value thread pid")
EVERY_STEP = "warmup=1000000;labels=1000000"


def session(record):
    return {
        "DAYDREAM_SESSION_ID": "0123456789abcdef0123456789abcdef",
        "DAYDREAM_INJECT": LIBRARY,
        "DAYDREAM_RECORD": record,
    }


# Whole programs.

Result = namedtuple("Result", "code out err marks")


def run(script, record="warmup=4;labels=2", flags=(), env=None, before=(), armed=True, args=()):
    """Runs the text of a script. before: what stands between the flags and the script."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "program.py")
        log = os.path.join(folder, "marks")
        with open(path, "w") as file:
            file.write(script)
        variables = dict(os.environ, MARK_LOG=log)
        if armed:
            variables.update(session(record), PYTHONPATH=os.path.join(PYTHON_DIR, "site"))
        variables.update(env or {})
        done = subprocess.run(
            [sys.executable, *flags, *before, path, *args],
            env=variables, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        marks = []
        if os.path.exists(log):
            with open(log) as file:
                marks = [_parse(line) for line in file]
        return Result(done.returncode, done.stdout.decode(), done.stderr.decode(), marks)


def run_forked(script, record="warmup=4;labels=2", setup=""):
    """The same in a fork of this process, which has imported torch already: much faster. Without a
    record nothing is armed. setup: a script that runs before torch is marked."""
    folder = tempfile.mkdtemp()  # not a TemporaryDirectory: the child's exit would remove it
    try:
        paths = [os.path.join(folder, name) for name in ("out", "err", "marks")]
        child = os.fork()
        if child == 0:
            _run_in_child(script, record, setup, paths)
        _, status = os.waitpid(child, 0)
        texts = []
        for path in paths:
            with open(path, "a+") as file:
                file.seek(0)
                texts.append(file.read())
        marks = [_parse(line) for line in texts[2].splitlines()]
        return Result(os.waitstatus_to_exitcode(status), texts[0], texts[1], marks)
    finally:
        shutil.rmtree(folder)


def _run_in_child(script, record, setup, paths):
    code = 1
    try:
        for path, number in ((paths[0], 1), (paths[1], 2)):
            os.dup2(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600), number)
        exec(setup, {})
        if record is not None:
            armed(record)
        os.environ["MARK_LOG"] = paths[2]
        exec(compile(script, "program.py", "exec"), {"__name__": "__main__"})
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _parse(line):
    pid, thread, _, kind, value, name = line.rstrip("\n").split("\t", 5)
    return Mark(KINDS[int(kind)], name, int(value), int(thread), int(pid))


# This process.


class _Raw(ctypes.Structure):
    _fields_ = [
        ("time", ctypes.c_int64), ("value", ctypes.c_int64), ("kind", ctypes.c_uint32),
        ("name", ctypes.c_uint32), ("thread", ctypes.c_uint32), ("pad", ctypes.c_uint32),
    ]  # fmt: skip


def armed(record=EVERY_STEP):
    """Records this process from now on. Returns torch."""
    os.environ.update(session(record))
    sys.path.insert(0, PYTHON_DIR)
    import daydream_torch

    daydream_torch.arm()
    need_torch()
    import torch

    return torch


def _log():
    library = ctypes.CDLL(LIBRARY)
    library.mark_log_get.restype = ctypes.POINTER(_Raw)
    library.mark_log_name.restype = ctypes.c_char_p
    return library


def count():
    return _log().mark_log_count()


def clear():
    _log().mark_log_clear()


def marks():
    library, found = _log(), []
    for i in range(library.mark_log_count()):
        raw = library.mark_log_get(i).contents
        name = library.mark_log_name(raw.name).decode()
        found.append(Mark(KINDS[raw.kind], name, raw.value, raw.thread, os.getpid()))
    return found


# What tests ask about marks.


def of(marks, *kinds):
    return [m for m in marks if m.kind in kinds]


def paths(marks):
    """Paths of the layers in order of their forward calls."""
    return [m.name.split("\t")[0] for m in of(marks, "LAYER_BEGIN")]


def complaints(result):
    """What we said on stderr; PyTorch says something there at times, too."""
    return [line for line in result.err.splitlines() if line.startswith("daydream:")]


def balanced(marks):
    """Every begin has its end, in order, thread by thread."""
    stacks = {}
    for mark in marks:
        stack = stacks.setdefault((mark.pid, mark.thread), [])
        if mark.kind.endswith("_BEGIN") and mark.kind != "LABELS_BEGIN":
            stack.append(mark.kind)
        elif mark.kind.endswith("_END") and mark.kind != "LABELS_END":
            if not stack or stack.pop() != mark.kind.replace("_END", "_BEGIN"):
                return False
    return not any(stacks.values())


def skip(why):
    """Ends the whole test file as skipped."""
    print("skipped:", why)
    sys.exit(77)


def need_torch():
    try:
        import torch  # noqa: F401
    except ImportError as error:
        skip("%s cannot import torch: %s" % (sys.executable, error))


def main():
    unittest.main(verbosity=2)
