"""Names for modules: "ResNet.layer1.0.conv1", the class of the root and the path below it.

A root is a module that is called while no other one runs on its thread. The first call of a root
names everything below it; a module that two paths reach keeps the first. Wrappers (DDP, FSDP,
torch.compile, checkpointing) do not show: the wrapper takes the name of what it wraps, and the
wrapped module has no marks of its own. Modules are known by id() and by weak references only.
"""

from __future__ import annotations

import weakref
from typing import Any, Callable, Dict, List, Optional, Set

from daydream_torch import complain, safely, sink

# Class of a wrapper -> attribute that holds what it wraps.
_WRAPPERS = {
    "DistributedDataParallel": "module",
    "DataParallel": "module",
    "FullyShardedDataParallel": "_fsdp_wrapped_module",
    "OptimizedModule": "_orig_mod",
    "CheckpointWrapper": "_checkpoint_wrapped_module",
    "OffloadWrapper": "_checkpoint_wrapped_module",
}

ids: Dict[int, int] = {}  # id(module) -> layer, 0: no marks
is_jit_tracing: Callable[[], bool] = bool
on_new_root: List[Callable[[str, Any], None]] = []
_alive: Dict[int, "weakref.ref[Any]"] = {}  # forgets the id when the module dies
_paths: Dict[int, str] = {}  # layer -> path
_roots: Dict[str, "weakref.ref[Any]"] = {}


def label(module: Any, parent: int) -> int:
    """Names a module that ids does not have; parent is the layer that runs, 0: none."""
    if is_jit_tracing():  # what is asked about a parameter now would end up in the traced graph
        return 0
    try:
        if parent == 0:
            _name_tree(module)
        else:
            _remember(module, "%s.%s" % (_paths.get(parent, "?"), type(module).__name__), None)
        return ids[id(module)]
    except Exception as error:
        complain("a %s has no name: %r" % (type(module).__name__, error))
        ids[id(module)] = 0
        _alive[id(module)] = weakref.ref(module, _forget(id(module)))
        return 0


def class_of(module: Any) -> str:
    return type(unwrap(module)).__name__


def unwrap(module: Any) -> Any:
    inner = _inner(module)
    return module if inner is None else unwrap(inner)


def _inner(module: Any) -> Optional[Any]:
    attribute = _WRAPPERS.get(type(module).__name__)
    return module._modules.get(attribute) if attribute else None


def _name_tree(root: Any) -> None:
    name = _free_root_name(class_of(root))
    _roots[name] = weakref.ref(root)
    _walk(root, name, set(), set())
    for action in on_new_root:
        safely(action)(name, root)


def _free_root_name(wanted: str) -> str:
    """Roots that live at the same time have different names: "Linear", "Linear#2"."""
    name, count = wanted, 1
    while name in _roots and _roots[name]() is not None:
        count += 1
        name = "%s#%d" % (wanted, count)
    return name


def _walk(module: Any, path: str, seen: Set[int], owned: Set[int]) -> None:
    """Depth first, as named_modules() goes. owned: parameters that an earlier layer has."""
    if module is None or id(module) in seen:
        return
    wrappers = [module]
    while _inner(wrappers[-1]) is not None:
        wrappers.append(_inner(wrappers[-1]))
    inner = wrappers.pop()
    seen.update(id(m) for m in wrappers)
    seen.add(id(inner))
    if wrappers:
        _remember(wrappers[0], path, owned)
        for hidden in wrappers[1:] + [inner]:
            _remember(hidden, None, owned)
    else:
        _remember(inner, path, owned)
    for child_name, child in inner._modules.items():
        _walk(child, path + "." + child_name, seen, owned)


def _remember(module: Any, path: Optional[str], owned: Optional[Set[int]]) -> None:
    """path None: the module has no marks."""
    key = id(module)
    if key in ids:
        return
    layer = 0
    if path is not None:
        inner = unwrap(module)
        text = "%s\t%s\t%d" % (path, type(inner).__name__, _parameters(inner, owned))
        layer = sink.name(text.replace("\n", " "))
        _paths[layer] = path
    _alive[key] = weakref.ref(module, _forget(key))
    ids[key] = layer


def _parameters(module: Any, owned: Optional[Set[int]]) -> int:
    """Elements of the module's own parameters, those below not included, shared ones once."""
    total = 0
    for parameter in module._parameters.values():
        if parameter is None or (owned is not None and id(parameter) in owned):
            continue
        if owned is not None:
            owned.add(id(parameter))
        try:
            total += parameter.numel()
        except Exception:  # not initialised yet
            pass
    return total


def _forget(key: int) -> Callable[[Any], None]:
    def forget(_: Any) -> None:
        ids.pop(key, None)
        _alive.pop(key, None)

    return forget
