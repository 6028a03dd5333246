"""Arguments of Python as flags of the command, which checks them."""

from __future__ import annotations

import os
from typing import Any, List, Mapping, Optional


def flags(**arguments: Any) -> List[str]:
    """["--opt-file", "x.yaml"] of opt_file="x.yaml": None and False are left out, True is a switch,
    and a list repeats the flag."""
    words = []
    for name, value in arguments.items():
        flag = "--" + name.strip("_").replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            words.append(flag)
            continue
        many = value if isinstance(value, (list, tuple)) else [value]
        words.extend(flag + "=" + text_of(one) for one in many)
    return words


def text_of(value: Any) -> str:
    return os.fsdecode(value) if isinstance(value, (os.PathLike, bytes)) else str(value)


def settings(values: Optional[Mapping[str, Any]]) -> List[str]:
    """["amp.dtype=bf16"] of {"amp.dtype": "bf16"}."""
    if values is not None and not isinstance(values, Mapping):
        raise TypeError('values is a dict such as {"amp.dtype": "fp16"}')
    return ["%s=%s" % (name, text_of(value)) for name, value in (values or {}).items()]
