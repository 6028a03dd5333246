"""What would an optimization bring to this training step? Asked from Python.

    import daydream as dd
    t = dd.load("run.ddtrace")            # or a trace of the PyTorch profiler, Nsight Systems, ...
    r = t.whatif("amp,fuse")
    r.step_ms, r.interval_ms, r.speedup, r.causes

The answers are those of the command `daydream`, from the same functions: `r.to_dict()` is what
`daydream whatif run.ddtrace --opt amp,fuse --format json` prints. Importing this needs nothing but
the standard library; pandas, polars and torch are used where they are there and asked for.

Threads: a Trace may be shared. While it computes, other threads of Python go on.
"""

from daydream import callbacks
from daydream._daydream import Edit, version as __version__
from daydream.errors import Error, Warning
from daydream.frame import Frame
from daydream.optimization import Optimization, optimization
from daydream.recording import Recorder, record
from daydream.trace import Trace, load, sweep
from daydream.whatif import WhatIf

__all__ = [
    "Edit",
    "Error",
    "Frame",
    "Optimization",
    "Recorder",
    "Trace",
    "Warning",
    "WhatIf",
    "callbacks",
    "load",
    "optimization",
    "record",
    "sweep",
]
