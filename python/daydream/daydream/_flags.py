"""Arguments of Python as flags of the command, which checks them."""

import os


def flags(**arguments):
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


def text_of(value):
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


def settings(values):
    """["amp.dtype=bf16"] of {"amp.dtype": "bf16"}."""
    return ["%s=%s" % (name, text_of(value)) for name, value in (values or {}).items()]
