"""Errors with the codes of the command: `daydream explain E0301` describes each."""

from __future__ import annotations

import builtins
from typing import Any


class Error(Exception):
    """What could not be done, and how to mend it. Its text is what the command prints.

    code: "E0301"; "" where there is none.
    what, where, why, effect, fix: the parts of the text, each may be "".
    exit_code: that of the command, 2 for a wrong question, 3 for an unreadable input, 4 where the
        recording cannot answer.
    result: the WhatIf, where others of its scenarios could be predicted, or None.
    """

    def __init__(
        self,
        text: str,
        code: str = "",
        what: str = "",
        where: str = "",
        why: str = "",
        effect: str = "",
        fix: str = "",
        exit_code: int = 1,
    ) -> None:
        super().__init__(text.rstrip("\n"))
        self.code, self.what, self.where = code, what, where
        self.why, self.effect, self.fix = why, effect, fix
        self.exit_code = exit_code
        self.result: Any = None

    def __reduce__(self):  # between processes
        fields = (self.code, self.what, self.where, self.why, self.effect, self.fix, self.exit_code)
        return (Error, (str(self), *fields))


class Warning(builtins.UserWarning):
    """What weakens an answer, such as events that were lost."""
