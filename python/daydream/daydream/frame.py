"""A table as plain columns, for whatever library reads them."""

from __future__ import annotations

import re
from typing import Any, Dict, List

from daydream.display import frame_html


_WHOLE = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)(e[+-]?[0-9]+)?")


def _numbers(values):
    """The column as int or float, where all of its texts are such numbers."""
    texts = [v for v in values if v is not None]
    for form, kind in ((_WHOLE, int), (_NUMBER, float)):
        if texts and all(isinstance(v, str) and form.fullmatch(v) for v in texts):
            return [None if v is None else kind(v) for v in values]
    return values


class Frame(dict):
    """{column: list}, all of one length: `pandas.DataFrame(frame)` and `polars.DataFrame(frame)`
    take it as it is."""

    @classmethod
    def of_sweep(cls, answer: Dict[str, Any]) -> Frame:
        """Of the JSON of `daydream sweep`, as a dict."""
        rows = answer["rows"]
        names = []
        for row in rows:
            names.extend(n for n in row["values"] if n not in names)
        frame = cls()
        for name in names:
            frame[name] = _numbers([row["values"].get(name) for row in rows])
        frame["opt"] = [row["opt"] for row in rows]
        for column, key in (("step_ms", "step_ns"), ("low_ms", "low_ns"), ("high_ms", "high_ns")):
            frame[column] = [None if row[key] is None else row[key] / 1e6 for row in rows]
        for key in ("speedup", "bound", "confidence", "memory_change_bytes", "left_out", "error"):
            frame[key] = [row.get(key) for row in rows]
        return frame

    def rows(self) -> List[Dict[str, Any]]:
        """One dict for each row."""
        return [dict(zip(self, values)) for values in zip(*self.values())]

    def to_pandas(self) -> Any:
        """A pandas.DataFrame. ImportError where pandas is not installed."""
        import pandas

        return pandas.DataFrame(dict(self))

    def to_polars(self) -> Any:
        """A polars.DataFrame. ImportError where polars is not installed."""
        import polars

        return polars.DataFrame(dict(self))

    def __repr__(self) -> str:
        return "<daydream.Frame: %d rows of %s>" % (len(self.rows()), ", ".join(self))

    def _repr_html_(self) -> str:
        return frame_html(self)
