"""What `daydream trace` asks for, from DAYDREAM_RECORD ("key=value;key=value")."""

from __future__ import annotations

import os
from typing import Dict


def _read() -> Dict[str, str]:
    pairs = (part.partition("=") for part in os.environ.get("DAYDREAM_RECORD", "").split(";"))
    return {key.strip(): value.strip() for key, _, value in pairs}


def _number(key: str, default: int) -> int:
    try:
        return max(int(_values[key]), 0)
    except (KeyError, ValueError):
        return default


_values = _read()

# As in tracer/environment.cc.
_RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK", "SLURM_PROCID")


def records_rank() -> bool:
    """Whether this process is of a rank that shall be recorded, or of none."""
    wanted = _values.get("ranks", "")
    rank = next((os.environ[name] for name in _RANKS if os.environ.get(name)), "")
    return not wanted or not rank.isdigit() or int(rank) in map(int, wanted.split(","))

capture = _values.get("capture", "steps")
layers = _values.get("layers", "auto")  # auto, force or off
warmup = _number("warmup", 10)
# Layers are labelled in the steps [first_labelled, warmup), the last ones of the warm-up.
first_labelled = max(warmup - _number("labels", 3), 0)
