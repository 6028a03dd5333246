#!/usr/bin/env python3
"""Writes lessons.ipynb from the text of `daydream tour`: notebook.py PROGRAM [--check].

With --check nothing is written; it fails when the notebook is not what would be written.
"""
import json
import pathlib
import subprocess
import sys

FILE = pathlib.Path(__file__).parent / "lessons.ipynb"


def lines(text):
    return text.rstrip("\n").splitlines(keepends=True)


def folded(text):
    """Out of sight until it is opened: a guess comes first."""
    return f"<details><summary>Open after your guess</summary>\n\n{text.strip()}\n\n</details>\n"


class Notebook:
    def __init__(self):
        self.cells = []

    def add(self, kind, text):
        cell = {"cell_type": kind, "id": f"cell-{len(self.cells)}", "metadata": {}, "source": lines(text)}
        if kind == "code":
            cell |= {"execution_count": None, "outputs": []}
        self.cells.append(cell)

    def pieces(self, pieces):
        for piece in pieces:
            if "command" in piece:
                self.add("code", "!" + piece["command"])
            else:
                self.add("markdown", piece["text"])

    def lesson(self, lesson):
        name = lesson["lesson"]
        self.add("markdown", f"# {lesson['heading']}")
        self.add("code", f"!daydream tour {name} --save . --force-overwrite")
        self.pieces(lesson["story"])
        question = "**Question.** " + lesson["question"]
        for place, choice in enumerate(lesson["choices"], 1):
            # Ranks are named by their own number, not by their place.
            question += f"\n* {choice}" if choice[-1].isdigit() else f"\n{place}. {choice}"
        hints = "".join(f"\n\n<details><summary>A hint</summary>\n\n{hint}\n\n</details>" for hint in lesson["hints"])
        self.add("markdown", question + hints)
        self.add("code", f"guess = ''  # yours, before you go on\nif guess:\n    !daydream tour {name} --guess '{{guess}}' | grep -A 3 'You said'")
        for part, title in (("solution", "Solution"), ("surprise", "What surprises")):
            self.add("markdown", f"## {title}")
            self.pieces([piece if "command" in piece else {"text": folded(piece["text"])} for piece in lesson[part]])

    def text(self):
        return json.dumps({
            "cells": self.cells,
            "metadata": {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
                         "language_info": {"name": "python"}},
            "nbformat": 4,
            "nbformat_minor": 5,
        }, indent=1, ensure_ascii=False) + "\n"


def main():
    program = sys.argv[1]

    def tour(*args):
        return json.loads(subprocess.check_output([program, "tour", *args, "--format", "json"]))

    notebook = Notebook()
    notebook.add("markdown", "# Lessons of daydream\n\nFirst guess, then run the next cell. Every lesson is also in the"
                 " terminal: `daydream tour`. This file is written by `notebook.py`.")
    for entry in tour("--list")["lessons"]:
        notebook.lesson(tour(entry["lesson"], "--answers"))
    if "--check" not in sys.argv:
        FILE.write_text(notebook.text(), encoding="utf-8")
    elif FILE.read_text(encoding="utf-8") != notebook.text():
        sys.exit(f"{FILE} is not current: run {sys.argv[0]} {program}")


if __name__ == "__main__":
    main()
