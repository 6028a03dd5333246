from typing import Any, Callable, Dict, List, Sequence, Tuple

version: str

class Edit:
    """The graph of a step while an optimization edits it.

    Tasks (kernels, copies, host work) are numbers that select() returns; times are in ns. Methods
    raise daydream.Error: E0438 for a task that is not there or cannot be meant, and once the
    function that was handed the edit is over.
    """

    def select(self, selector: str, relation: str = "") -> List[int]:
        """Live tasks that match, "class:conv&phase:backward" (docs/optimization-file-reference.md).

        relation: instead the tasks that are related to these: not, launched_by, inside, before, after,
        first, last, between (on the same lane in the same step). Raises E0103 for a selector that
        cannot be read.
        """
    def runs(self, tasks: Sequence[int]) -> List[List[int]]:
        """The longest runs of two or more of these kernels with nothing else between them.

        A run is on one stream, in one step and phase.
        """
    def times_ns(self, tasks: Sequence[int]) -> List[int]:
        """Own work of each task in ns, without waiting."""
    def names(self, tasks: Sequence[int]) -> List[str]:
        """The name of each task, as recorded: of a kernel, a call, an operator."""
    def task(self, task: int) -> Dict[str, Any]:
        """What is known of a task: a dict.

        name, lane, gpu (bool), time_ns (own work), gap_ns (how long its lane stays busy behind it), step
        (from 0; the first one does not count), removed (bool).
        """
    def cause(self, what: str) -> None:
        """What the edits from here on are reported as in WhatIf.causes.

        Raises E0426 for more than 1000 of them.
        """
    def note(self, text: str) -> None:
        """An assumption, for WhatIf.notes."""
    def scale(self, tasks: Sequence[int], factor: float) -> None:
        """Multiplies times of tasks by a factor, 0 or more.

        Raises E0424 for another factor, or one that makes a task longer than can be replayed.
        """
    def set_time(self, tasks: Sequence[int], ns: float) -> None:
        """Gives each task this time in ns, 0 or more. Raises E0424 for another."""
    def remove(self, tasks: Sequence[int]) -> None:
        """Takes tasks away; GPU work with the calls that launch nothing else.

        Whatever waited for one now waits for what that one waited for.
        """
    def insert_after(self, task: int, name: str, ns: float) -> int:
        """New work of `ns` behind a task, on its lane; returns its number.

        Beside GPU work that is a kernel with its launch, beside host work host work. Raises E0424 for a
        time below 0, E0426 when too much is added: a million tasks, or four for each recorded one.
        """
    def insert_before(self, task: int, name: str, ns: float) -> int:
        """As insert_after(), but in front of the task."""
    def fuse(self, tasks: Sequence[int], name: str, ns: float) -> int:
        """One kernel that takes `ns` in place of a run; returns its number.

        The launches of the others are gone. Raises E0438 for what is no run (runs() returns them) and
        E0424 for a time below 0.
        """
    def fused_time_ns(
        self, tasks: Sequence[int], passes: float = 2.5, kept: float = 0.0, floor_ns: float = 2000.0
    ) -> float:
        """What a run takes, in ns, as one kernel that reads and writes each tensor once.

        As the optimization `fuse` takes it: by shapes where they are known, else by times. passes: how
        often a kernel of the run goes over memory, 1 to 16. kept: share of its bytes that remains, 0 to
        1. floor_ns: no kernel is shorter. Raises E0438 for what is no run, E0424 for other values.
        """
    def merge(self, tasks: Sequence[int], name: str, ns: float, cause: str) -> None:
        """As fuse(), and the host work of the merged operators goes, too, reported as `cause`.

        As in the optimization `fuse`. Raises as fuse().
        """

class Recording:
    def whatif(self, scenarios: List[Tuple[str, list]], flags: List[str]) -> str: ...
    def advise(self, flags: List[str]) -> Tuple[str, List[Tuple[str, str, str]]]: ...
    def ranks(self) -> str: ...
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
