"""Optimizations of your own, as functions over the verbs that the built-in ones use."""

from __future__ import annotations

import inspect
from typing import Any, Callable, Mapping, Optional, Tuple

from daydream import _daydream


class Optimization:
    """A function that edits the graph of a step (made by the decorator `optimization`).

    Goes into Trace.whatif like the name of a built-in one, alone or in a list with others. Calling
    it gives the same optimization with other values of its parameters: `half_conv(by=3)`.
    """

    def __init__(self, own, name, function, given):
        self._own, self.name, self.function, self.given = own, name, function, given
        self.__doc__ = function.__doc__

    def __call__(self, **given: float) -> Optimization:
        """The same optimization with these values of its parameters, which are numbers.

        Others keep their values. Whether there are such parameters is asked by whatif(), which
        raises Error: E0103 for an unknown one.
        """
        return Optimization(self._own, self.name, self.function, {**self.given, **given})

    def _given(self):
        return self._own, [(name, repr(float(value))) for name, value in self.given.items()]

    def __repr__(self):
        given = ", ".join("%s=%g" % item for item in self.given.items())
        return "<daydream.Optimization %s(%s)>" % (self.name, given)


def optimization(
    function: Optional[Callable[..., None]] = None,
    *,
    name: Optional[str] = None,
    ranges: Optional[Mapping[str, Tuple[float, float]]] = None,
) -> Any:
    """Makes an Optimization of a function.

        @dd.optimization(ranges={"by": (1.5, 3)})
        def half_conv(edit, by=2.0):
            "Convolutions run faster"
            edit.cause("convolutions run faster")
            edit.scale(edit.select("class:conv"), 1 / by)

        t.whatif(half_conv), t.whatif(["amp", half_conv(by=1.8)])

    The first parameter is the Edit; the others are numbers with defaults, handed over by name.
    ranges: the plausible values of a parameter, (low, high): what the interval is drawn from.
    name: as shown in results; otherwise that of the function with '-' for '_'.

    The function is called once or more for each prediction, sometimes at once from several threads;
    it must do the same each time. What it raises is raised by whatif(). Afterwards the graph is
    checked as that of any optimization: Error E0601 where it changed nothing, E0617 and E0901 where
    the result cannot be replayed.
    """
    if function is None:
        return lambda f: optimization(f, name=name, ranges=ranges)
    name = name or function.__name__.replace("_", "-")
    params = []
    ranges = dict(ranges or {})
    for parameter in list(inspect.signature(function).parameters.values())[1:]:
        value = parameter.default
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise TypeError(
                "%s(): parameter '%s' needs a number as its default" % (name, parameter.name)
            )
        low, high = ranges.pop(parameter.name, (value, value))
        if not low <= value <= high:
            raise ValueError(
                "%s(): the default of '%s' is not in its range" % (name, parameter.name)
            )
        params.append((parameter.name, float(value), float(low), float(high)))
    if ranges:
        raise TypeError("%s(): no parameter '%s'" % (name, next(iter(ranges))))
    summary = (inspect.getdoc(function) or "An optimization in Python").split("\n")[0].rstrip(".")
    own = _daydream.OwnOptimization(name, summary, params, function)
    return Optimization(own, name, function, {})
