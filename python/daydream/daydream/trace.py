"""A recording, ready to be asked."""

from __future__ import annotations

import json
import os
import warnings
from typing import Any, Dict, List, Mapping, Optional, Sequence, Union

from daydream import _daydream, errors
from daydream._flags import flags, settings
from daydream.display import trace_html
from daydream.frame import Frame
from daydream.optimization import Optimization
from daydream.whatif import WhatIf

Path = Union[str, "os.PathLike[str]"]
Scenario = Union[str, Optimization, Sequence[Union[str, Optimization]]]
Texts = Union[str, Sequence[str], None]


def load(
    path: Path,
    *,
    rank: Union[int, str, None] = None,
    steps: Optional[str] = None,
    format: Optional[str] = None,
    strict: bool = False,
    max_errors: Optional[str] = None,
    et: Optional[Path] = None,
    memory: Optional[Path] = None,
    shapes: Optional[Path] = None,
    true_step: Optional[str] = None,
    keep_recording_cost: bool = False,
    samples: Optional[int] = None,
    jobs: Optional[int] = None,
) -> Trace:
    """Reads a recording of any format that daydream knows, told by its content.

    path: the file, or a folder with one file for each rank of a run: all are played together, and
        whatif(), advise() and ranks() are about all of them, as the command's answers are.
    rank: of several ranks the one to look at alone, a number or "auto".
    steps: steps that count, "auto", "all" or places from 0 like "2-5,7"; of one rank, as true_step
        (E0437 for a folder of ranks without `rank`).
    format: "kineto", "nsys", ...; None looks at the content.
    strict: refuse malformed events instead of counting them; max_errors: share of them, "1%".
    et, memory, shapes: files of the same program with more facts (docs/formats.md).
    true_step: what a step takes without the profiler, "101ms" or "9.9/s".
    keep_recording_cost: leave what recording cost, where it tells that, in the time of the host.
    samples: examples in a recorded step, where the recorded shapes do not tell.
    jobs: threads; results do not depend on it.

    Raises Error: E02xx for what cannot be read, E03xx where it holds no step. Warns (Warning) of
    what was lost. Takes what the command takes to read: 1 to 2 s for 100 MB.
    """
    words = flags(
        rank=rank,
        steps=steps,
        from_=format,
        strict=strict,
        max_errors=max_errors,
        et=et,
        memory=memory,
        shapes=shapes,
        true_step=true_step,
        keep_recording_cost=keep_recording_cost,
        samples=samples,
        jobs=jobs,
    )
    name = os.fsdecode(path)
    recording, said = _daydream.load(name, words)
    _pass_on(said)
    return Trace(recording, name, jobs, [text for _, _, text in said])


def sweep(trace: Union[Trace, Path], *opts: str, **arguments: Any) -> Frame:
    """Trace.sweep of a Trace, or of a file."""
    return (trace if isinstance(trace, Trace) else load(trace)).sweep(*opts, **arguments)


class Trace:
    """A recording (made by load). Never changes, so threads may share it."""

    def __init__(self, recording, path, jobs, messages):
        self._recording = recording
        self._jobs = jobs
        self._facts = None
        self.path = path
        self.messages = messages
        """What was said while it was read, as text."""

    def whatif(
        self,
        *scenarios: Scenario,
        alone: bool = True,
        interval: bool = True,
        values: Optional[Mapping[str, Any]] = None,
        opt_file: Texts = None,
        on: Optional[str] = None,
        max_replay_error: Optional[str] = None,
        allow_no_effect: bool = False,
        jobs: Optional[int] = None,
    ) -> WhatIf:
        """Predicts the step with optimizations.

        scenarios: each is what --opt takes, "amp(dtype=bf16),fuse", an Optimization of your own, or
            a list of both, applied together. Without any, the recorded step alone.
            Where ranks are played together, each is applied to all ranks, and texts alone will do.
        alone: also predict each optimization of a scenario alone.
        interval: 90 % intervals, which take most of the time.
        values: other values of parameters, {"amp.dtype": "fp16"}.
        opt_file: option files (YAML) whose names scenarios may use.
        on: of ranks that are played together, those that change: "ranks 0-3,6". None: all. E0437 of
            one rank.
        max_replay_error: share of the step above which nothing is predicted, "10%".
        allow_no_effect: where the last scenario cannot be predicted, return the result with None in
            it instead of raising.

        Returns a WhatIf. Raises Error: E01xx for a question that cannot be read, E0601 where the
        optimization changes nothing in this recording (or in none of the steps that count), E0602 where the replay is too far off. What
        a function of yours raises is raised as it is.
        """
        words = flags(
            no_alone=not alone,
            no_interval=not interval,
            set=settings(values),
            opt_file=opt_file,
            on=on,
            max_replay_error=max_replay_error,
            jobs=jobs or self._jobs,
        )
        asked = [_scenario(s) for s in scenarios]
        result = WhatIf(json.loads(self._recording.whatif(asked, words)))
        if not allow_no_effect:
            result.raise_if_failed()
        return result

    def advise(
        self,
        *,
        exclude: Texts = None,
        budget: Texts = None,
        opt: Texts = None,
        opt_file: Texts = None,
        jobs: Optional[int] = None,
    ) -> Dict[str, Any]:
        """Every optimization that can be switched on, ranked, and the best set: what `daydream
        advise --format json` prints, as a dict. Times are in ms and ns, by the names.

        exclude: names to leave out. budget: "effort<=20 lines", "risk=none". opt: also try these,
        "batch(x2)". Raises Error as whatif()."""
        words = flags(
            exclude=exclude, budget=budget, opt=opt, opt_file=opt_file, jobs=jobs or self._jobs
        )
        text, said = self._recording.advise(words)
        _pass_on(said)
        return json.loads(text)

    def ranks(self) -> Dict[str, Any]:
        """Who waits for whom, of ranks that are played together: what `daydream ranks --format json`
        prints, as a dict. Times are in ms, by the names. Raises Error: E0437 for one rank."""
        return json.loads(self._recording.ranks())

    def summary(self, by: str = "class") -> Dict[str, Any]:
        """Where the time of a step goes, in ns per step, as `daydream summary --format json`.

        by: class, op, kernel, layer, phase, stream or host. Raises Error: E0437 for ranks that are
        played together, as a summary is of one."""
        return json.loads(self._recording.summary(by))

    def sweep(
        self,
        *opts: str,
        interval: bool = True,
        values: Optional[Mapping[str, Any]] = None,
        opt_file: Texts = None,
        jobs: Optional[int] = None,
    ) -> Frame:
        """Predicts scenarios for ranges of parameters: "prefetch(workers=1..8)", "amp(dtype={bf16,
        fp16})"; several ranges of one text are crossed.

        Returns a Frame: a column for each parameter (numbers, or text such as "bf16"), and opt, step_ms, low_ms, high_ms
        (90 % interval), speedup, bound, confidence, memory_change_bytes, left_out, error (a code;
        such a row has None for numbers). Raises Error: E0701 for a range without values, E0437 for
        ranks that are played together."""
        words = flags(
            no_interval=not interval,
            set=settings(values),
            opt_file=opt_file,
            jobs=jobs or self._jobs,
        )
        return Frame.of_sweep(json.loads(self._recording.sweep(list(opts), words)))

    @property
    def facts(self) -> Dict[str, Any]:
        """What is known without a question: the JSON of `daydream whatif` without --opt."""
        if self._facts is None:
            self._facts = json.loads(self._recording.whatif([], []))
        return self._facts

    @property
    def device(self) -> str:
        """Name of the first GPU, or ""; of ranks that are played together also ""."""
        return self.facts["trace"].get("device", "")

    @property
    def steps(self) -> Optional[int]:
        """Number of recorded steps that count; None of ranks that are played together."""
        return self.facts.get("steps")

    @property
    def step_ms(self) -> float:
        """Mean measured length of these steps, in ms; of ranks that are played together the step as
        they are replayed."""
        facts = self.facts
        return facts["replay"]["measured_ms"] if "replay" in facts else facts["step_ms"]

    @property
    def replay_error_pct(self) -> Optional[float]:
        """How far the replay of the unchanged recording is off the measured step, in percent; of
        ranks that are played together how far the length of the worst one is. None: no step."""
        facts = self.facts
        if "replay" in facts:
            return facts["replay"]["error_pct"]
        return facts["ranks"]["check"]["span_error_pct"]

    @property
    def findings(self) -> List[Dict[str, Any]]:
        """What is remarkable about the recording, worst first: dicts with text, ms and fix."""
        return self.facts.get("findings", [])

    def __repr__(self):
        name = os.path.basename(os.path.normpath(self.path))
        if self.steps is None:
            ranks = len(self.facts["ranks"]["recorded"])
            return "<daydream.Trace %s: %d ranks, steps of %.1f ms>" % (name, ranks, self.step_ms)
        return "<daydream.Trace %s: %d step%s of %.1f ms, %s>" % (
            name,
            self.steps,
            "" if self.steps == 1 else "s",
            self.step_ms,
            self.device or "GPU not named",
        )

    def _repr_html_(self):
        return trace_html(self)


def _scenario(scenario):
    """(text, [(function, arguments)]) of one scenario."""
    parts = scenario if isinstance(scenario, (list, tuple)) else [scenario]
    texts, own = [], []
    for part in parts:
        if isinstance(part, Optimization):
            own.append(part._given())
        elif isinstance(part, str):
            texts.append(part)
        else:
            raise TypeError(
                "a scenario is a text such as 'amp,fuse', an Optimization (@daydream.optimization), "
                "or a list of these, not %s" % type(part).__name__
            )
    return ",".join(texts), own


def _pass_on(said):
    for kind, _, text in said:
        if kind == "warning":
            warnings.warn(text.rstrip("\n"), errors.Warning, stacklevel=3)
