"""The answer to a what-if."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

from daydream.display import whatif_html
from daydream.errors import Error
from daydream.frame import Frame


class WhatIf:
    """The recorded step and each scenario, as the command tells them. Times are in ms.

    The properties are those of the last scenario asked for; of the recorded step where none was.
    """

    def __init__(self, answer):
        self._answer = answer

    def to_dict(self) -> Dict[str, Any]:
        """What `daydream whatif --format json` prints (schema "daydream.whatif/1")."""
        return self._answer

    @property
    def scenarios(self) -> List[Dict[str, Any]]:
        """The baseline, each optimization alone by gain, then the scenarios: dicts."""
        return self._answer["scenarios"]

    @property
    def main(self) -> Dict[str, Any]:
        """The scenario that answers the question, as a dict."""
        return self.scenarios[self._answer["main"]]

    @property
    def baseline_ms(self) -> float:
        """The replayed step as it is, in ms."""
        return self.scenarios[0]["step_ms"]

    @property
    def step_ms(self) -> Optional[float]:
        """The predicted step, in ms; None where it could not be predicted."""
        return self.main["step_ms"]

    @property
    def interval_ms(self) -> Optional[List[float]]:
        """90 % interval of step_ms, [low, high]; None for limits, or without interval=True."""
        return self.main["interval_ms"]

    @property
    def speedup(self) -> Optional[float]:
        """baseline_ms / step_ms."""
        return self.main["speedup"]

    @property
    def speedup_interval(self) -> Optional[List[float]]:
        """90 % interval of speedup, or None; None of ranks that are played together."""
        return self.main.get("speedup_interval")

    @property
    def bound(self) -> bool:
        """Whether this is a limit (no change of this kind gives more), not a prediction."""
        return self.main["bound"]

    @property
    def confidence(self) -> Optional[str]:
        """How far to believe the interval: "high", "medium" or "low"; of a step that is no
        prediction "measured" or "given"; None of ranks that are played together. confidence_why and
        confidence_raise of main say more."""
        return self.main.get("confidence")

    @property
    def causes(self) -> List[Dict[str, Any]]:
        """Where the difference comes from: dicts with what, opt, delta_ms (they sum to step_ms -
        baseline_ms), gpu_ns and host_ns (change of work). Empty of ranks that are played together,
        where nothing is told of it."""
        return self.main.get("causes", [])

    @property
    def notes(self) -> List[str]:
        """What was assumed. Empty of ranks that are played together."""
        return self.main.get("notes", [])

    @property
    def error(self) -> Optional[Dict[str, str]]:
        """{"code", "what", ...} where the scenario could not be predicted, or None."""
        return self.main.get("error")

    def raise_if_failed(self) -> None:
        """Raises Error, with this as its `result`, where the scenario could not be predicted."""
        if self.error is None:
            return
        e = dict(self.error)
        text = "error[%s]: %s" % (e["code"], e["what"])
        for part in ("why", "fix"):
            if e.get(part):
                text += "\n  = %s: %s" % (part, e[part])
        error = Error(text, exit_code=4, **e)
        error.result = self
        raise error

    def to_frame(self) -> Frame:
        """A row for each scenario, as a Frame: scenario, step_ms, low_ms, high_ms, speedup, bound,
        confidence, peak_memory_bytes, error."""
        rows = {
            "scenario": [s["name"] for s in self.scenarios],
            "step_ms": [s["step_ms"] for s in self.scenarios],
            "low_ms": [(s["interval_ms"] or [None, None])[0] for s in self.scenarios],
            "high_ms": [(s["interval_ms"] or [None, None])[1] for s in self.scenarios],
            "speedup": [s["speedup"] for s in self.scenarios],
            "bound": [s["bound"] for s in self.scenarios],
            "confidence": [s.get("confidence") for s in self.scenarios],
            "peak_memory_bytes": [s.get("peak_memory_bytes") for s in self.scenarios],
            "error": [s.get("error", {}).get("code") for s in self.scenarios],
        }
        return Frame(rows)

    def __repr__(self) -> str:
        lines = []
        for s in self.scenarios:
            if s["step_ms"] is None:
                lines.append("%-32s %s" % (s["name"], s["error"]["what"]))
                continue
            between = "  %.1f - %.1f ms" % tuple(s["interval_ms"]) if s["interval_ms"] else ""
            limit = "<= " if s["bound"] else ""
            times = "" if s["speedup"] is None else "  %s%.2fx" % (limit, s["speedup"])
            lines.append("%-32s %9.1f ms%s%s" % (s["name"], s["step_ms"], times, between))
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return whatif_html(self)
