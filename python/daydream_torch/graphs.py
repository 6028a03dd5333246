"""Steps of a program that captures whole steps into a CUDA graph and then only replays it."""

from __future__ import annotations

import functools
import weakref
from typing import Any

from daydream_torch.steps import Steps


def install(torch: Any, steps: Steps) -> None:
    graph_class = getattr(torch.cuda, "CUDAGraph", None)
    if not hasattr(graph_class, "replay"):
        return
    begin, end, replay = graph_class.capture_begin, graph_class.capture_end, graph_class.replay
    captured: Any = weakref.WeakKeyDictionary()  # graph -> the optimizers that stepped in it

    @functools.wraps(begin)
    def capture_begin(graph: Any, *args: Any, **kwargs: Any) -> Any:
        result = begin(graph, *args, **kwargs)
        steps.capture_began()
        return result

    @functools.wraps(end)
    def capture_end(graph: Any, *args: Any, **kwargs: Any) -> Any:
        captured[graph] = steps.capture_ended()
        return end(graph, *args, **kwargs)

    @functools.wraps(replay)
    def replay_and_count(graph: Any, *args: Any, **kwargs: Any) -> Any:
        result = replay(graph, *args, **kwargs)
        steps.replayed(graph, captured.get(graph, ()))
        return result

    graph_class.capture_begin = capture_begin
    graph_class.capture_end = capture_end
    graph_class.replay = replay_and_count
