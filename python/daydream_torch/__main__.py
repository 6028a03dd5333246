"""`python -m daydream_torch script.py ARGS` or `... -m module ARGS`, for a Python that ignores
PYTHONPATH. With -I or -E the package is not found by name; then give Python the folder:
`python -I PREFIX/lib/daydream/python/daydream_torch script.py ARGS`.
"""

import os
import runpy
import sys


def main() -> None:
    here = os.path.dirname(os.path.abspath(__file__))
    if len(sys.argv) < 2 or sys.argv[1:] == ["-m"]:
        sys.exit("usage: python -m daydream_torch [-m] SCRIPT [ARG...]")
    if "daydream_torch" not in sys.modules:
        sys.path.insert(0, os.path.dirname(here))
        import daydream_torch  # noqa: F401

        del sys.path[0]
    sys.modules["daydream_torch"].arm()
    if sys.path and os.path.abspath(sys.path[0] or os.curdir) in (here, os.getcwd()):
        del sys.path[0]  # what Python put there for us; below is what it does for the program
    if sys.argv[1] == "-m":
        del sys.argv[:2]
        sys.path.insert(0, os.getcwd())
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        del sys.argv[0]
        sys.path.insert(0, os.path.dirname(os.path.abspath(sys.argv[0])))
        runpy.run_path(sys.argv[0], run_name="__main__")


main()
