"""Runs functions right after a module has been imported."""

from __future__ import annotations

import sys
from typing import Any, Callable, Dict, List

from daydream_torch import complain, safely

_waiting: Dict[str, List[Callable[[Any], None]]] = {}


def when_imported(name: str, action: Callable[[Any], None]) -> None:
    """Calls action(module) once the module is imported: now, if it is already."""
    module = sys.modules.get(name)
    spec = getattr(module, "__spec__", None)
    if module is not None and not getattr(spec, "_initializing", False):
        safely(action)(module)
        return
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
    _waiting.setdefault(name, []).append(action)


class _Finder:
    """Finds nothing itself: lets the other finders work and hooks into the loader they return."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name not in _waiting:
            return None
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                if hasattr(spec.loader, "exec_module"):
                    _hook(spec.loader)
                return spec
        return None


def _hook(loader: Any) -> None:
    """Shadows the loader's exec_module for one call."""

    def exec_module(module: Any) -> None:
        del loader.exec_module
        loader.exec_module(module)
        for action in _waiting.pop(module.__name__, []):
            safely(action)(module)

    try:
        loader.exec_module = exec_module
    except AttributeError:
        complain("the loader %r cannot be watched" % (loader,))
