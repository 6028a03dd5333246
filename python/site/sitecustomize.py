"""Arms daydream's PyTorch marks when Python starts, then runs the sitecustomize that it hides.

`daydream trace` puts this folder first in PYTHONPATH. Without a session nothing is armed, and
whatever goes wrong here stays here: the traced program must start as it always does.
"""

import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


def _arm():
    import importlib.util

    # Loaded by its place, so that no folder of ours stays in sys.path.
    folder = os.path.join(os.path.dirname(_HERE), "daydream_torch")
    spec = importlib.util.spec_from_file_location(
        "daydream_torch", os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
    )
    package = importlib.util.module_from_spec(spec)
    sys.modules["daydream_torch"] = package
    spec.loader.exec_module(package)
    package.arm()


def _run_hidden():
    """What Python would have done with the sitecustomize behind ours, its exceptions included."""
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    spec = PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        return
    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


sys.path[:] = [p for p in sys.path if os.path.abspath(p or os.curdir) != _HERE]
if os.environ.get("DAYDREAM_SESSION_ID"):
    try:
        _arm()
    except Exception as error:
        sys.stderr.write("daydream: layers are not marked: %r\n" % (error,))
_run_hidden()
