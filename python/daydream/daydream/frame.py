"""A table as plain columns, for whatever library reads them."""

from daydream.display import frame_html


class Frame(dict):
    """{column: list}, all of one length: `pandas.DataFrame(frame)` and `polars.DataFrame(frame)`
    take it as it is."""

    @classmethod
    def of_sweep(cls, answer):
        rows = answer["rows"]
        names = []
        for row in rows:
            names.extend(n for n in row["values"] if n not in names)
        frame = cls()
        for name in names:
            frame[name] = [row["values"].get(name) for row in rows]
        frame["opt"] = [row["opt"] for row in rows]
        for column, key in (("step_ms", "step_ns"), ("low_ms", "low_ns"), ("high_ms", "high_ns")):
            frame[column] = [None if row[key] is None else row[key] / 1e6 for row in rows]
        for key in ("speedup", "bound", "confidence", "memory_change_bytes", "left_out", "error"):
            frame[key] = [row.get(key) for row in rows]
        return frame

    def __len__(self):
        """Rows, as in other tables."""
        return len(next(iter(self.values()), []))

    def __bool__(self):
        return len(self) > 0

    def rows(self):
        """One dict for each row."""
        return [dict(zip(self, values)) for values in zip(*self.values())]

    def to_pandas(self):
        """A pandas.DataFrame. ImportError where pandas is not installed."""
        import pandas

        return pandas.DataFrame(dict(self))

    def to_polars(self):
        """A polars.DataFrame. ImportError where polars is not installed."""
        import polars

        return polars.DataFrame(dict(self))

    def __repr__(self):
        return "<daydream.Frame: %d rows of %s>" % (len(self), ", ".join(self))

    def _repr_html_(self):
        return frame_html(self)
