from typing import Any, Callable, Dict, List, Sequence, Tuple

version: str

class Edit:
    """The graph of a step while an optimization edits it. Tasks (kernels, copies, host work) are
    numbers that select() returns; times are in ns. Methods raise daydream.Error: E0438 for tasks
    that cannot be meant, E0424 for values without meaning, E0103 for selectors that cannot be read,
    E0426 when too much is added."""

    def select(self, selector: str, relation: str = "") -> List[int]:
        """Live tasks that match, "class:conv&phase:backward" (docs/optimization-file-reference.md).
        relation: instead the tasks that are related to these: not, launched_by, inside, before,
        after, first, last, between (on the same lane in the same step)."""
    def runs(self, tasks: Sequence[int]) -> List[List[int]]:
        """The longest runs of two or more of these kernels with nothing else between them: on one
        stream, in one step and phase."""
    def times_ns(self, tasks: Sequence[int]) -> List[int]:
        """Own work of each, without waiting."""
    def names(self, tasks: Sequence[int]) -> List[str]: ...
    def task(self, task: int) -> Dict[str, Any]:
        """name, lane, gpu, time_ns, gap_ns, step, removed."""
    def cause(self, what: str) -> None:
        """What the edits from here on are reported as in WhatIf.causes."""
    def note(self, text: str) -> None:
        """An assumption, for WhatIf.notes."""
    def scale(self, tasks: Sequence[int], factor: float) -> None:
        """Times of tasks by a factor, 0 or more."""
    def set_time(self, tasks: Sequence[int], ns: float) -> None: ...
    def remove(self, tasks: Sequence[int]) -> None:
        """Takes tasks away; GPU work with the calls that launch nothing else. Whatever waited for
        one now waits for what that one waited for."""
    def insert_after(self, task: int, name: str, ns: float) -> int:
        """New work behind a task, on its lane: beside GPU work a kernel with its launch, beside host
        work host work. Returns its number."""
    def insert_before(self, task: int, name: str, ns: float) -> int: ...
    def fuse(self, tasks: Sequence[int], name: str, ns: float) -> int:
        """One kernel that takes `ns` in place of a run; launches of the others are gone."""
    def fused_time_ns(
        self, tasks: Sequence[int], passes: float = 2.5, kept: float = 0.0, floor_ns: float = 2000.0
    ) -> float:
        """What a run takes as one kernel that reads and writes each tensor once, as the optimization
        `fuse` takes it: by shapes where they are known, else by times."""
    def merge(self, tasks: Sequence[int], name: str, ns: float, cause: str) -> None:
        """As fuse(), and the host work of the merged operators goes, too, as in the optimization
        `fuse`."""

class Recording:
    def whatif(self, scenarios: List[Tuple[str, list]], flags: List[str]) -> str: ...
    def advise(self, flags: List[str]) -> Tuple[str, List[Tuple[str, str, str]]]: ...
    def summary(self, by: str) -> str: ...
    def sweep(self, specs: List[str], flags: List[str]) -> str: ...

class OwnOptimization:
    def __init__(
        self,
        name: str,
        summary: str,
        params: List[Tuple[str, float, float, float]],
        function: Callable[..., None],
    ) -> None: ...

def load(path: str, flags: List[str]) -> Tuple[Recording, List[Tuple[str, str, str]]]: ...
