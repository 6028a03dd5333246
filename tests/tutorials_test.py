"""Follows a page of docs/ as a stranger would.

Usage: tutorials_test.py SOURCE BUILD PAGE

Writes the files that the page shows ("Into `PATH`:", "Append to `PATH`:", "Into `PATH`, behind `LINE`:") into a copy of the sources
and runs its commands there (blocks tagged sh). What the page builds is linked from the objects of
BUILD, with only that compiled anew which the page added or whose source folder is compiled in, so that
it takes a minute instead of a whole build. Exits with 77 (skipped) where BUILD was not made by Ninja.
"""

import json
import os
import pathlib
import re
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile


def read_page(path):
    """Yields (what, where, text): what is "write", "append", "behind LINE" or "run"."""
    pending, fence, block = None, None, []
    for line in path.read_text().splitlines():
        if fence is not None:
            if line != "```":
                block.append(line)
                continue
            text = "\n".join(block) + "\n"
            if pending:
                yield (*pending, text)
            elif fence == "sh":
                yield "run", "", text
            pending, fence, block = None, None, []
            continue
        if line.startswith("```"):
            fence = line[3:]
        elif match := re.fullmatch(r"(Into|Append to) `([^`]+)`(, behind `[^`]+`)?:", line):
            how = "append" if match[1] == "Append to" else "write"
            pending = (match[3][2:].replace("`", "") if match[3] else how, match[2])


class Copy:
    def __init__(self, source, build, folder):
        self.source, self.build = source, build
        self.tree = folder / "tree"
        shutil.copytree(source, self.tree, symlinks=True,
                        ignore=shutil.ignore_patterns("build", ".git", "__pycache__"))
        (self.tree / "build/dev/tests/fuzz").mkdir(parents=True)
        self.added = []  # sources to compile into every program
        self.commands = {}
        for entry in json.loads((build / "compile_commands.json").read_text()):
            self.commands[os.path.relpath(entry["file"], source)] = entry["command"]
        self.tools = folder / "bin"
        self.tools.mkdir()
        fake = self.tools / "cmake"
        fake.write_text(f"#!/bin/sh\nexec {sys.executable} {__file__} --build "
                        f"{source} {build} {folder} \"$@\"\n")
        fake.chmod(fake.stat().st_mode | stat.S_IXUSR)

    def write(self, path, text, how):
        target = self.tree / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if how == "append":
            assert target.exists(), f"{path} is not there to append to"
            target.write_text(target.read_text() + text)
        elif how.startswith("behind "):
            lines = target.read_text().splitlines(keepends=True)
            lines.insert(lines.index(how.removeprefix("behind ") + "\n") + 1, text)
            target.write_text("".join(lines))
        else:
            assert not target.exists(), f"{path} is there already"
            target.write_text(text)

    def sources(self):
        """Sources of the libraries and the program that differ, or that read a list that does."""
        changed = []
        for path in self.tree.rglob("*"):
            name = path.relative_to(self.tree).as_posix()
            if not name.endswith((".cc", ".def")) or name.startswith(("build/", "tests/")):
                continue
            old = self.source / name
            if not old.exists() or old.read_bytes() != path.read_bytes():
                changed.append(name)
        lists = [name for name in changed if name.endswith(".def")]
        for path in self.tree.rglob("*.cc"):
            name = path.relative_to(self.tree).as_posix()
            if name.startswith(("build/", "tests/")):
                continue
            if any(f'#include "{x}"' in path.read_text() for x in lists):
                changed.append(name)
        return sorted({name for name in changed if name.endswith(".cc")})

    def newest(self):
        return max(path.stat().st_mtime for ending in ("cc", "h", "def")
                   for path in self.tree.rglob(f"*.{ending}"))

    def compile(self, name, model=None):
        known = [n for n in self.commands if n == (model or name)]
        if not known:  # a new file: the flags of its neighbours
            folder = name.split("/")[0]
            known = [n for n in self.commands if n.startswith(folder + "/") and n.endswith(".cc")]
            # Where files are compiled together, their flags are those of what includes them.
            known += [n for n in self.commands if f"/{folder}/CMakeFiles/" in n]
        words = shlex.split(self.commands[known[0]])
        output = self.tree / "build" / (name.replace("/", "_") + ".o")
        if output.exists() and output.stat().st_mtime > self.newest():
            return str(output)  # made for an earlier target
        out = []
        skip = False
        for i, word in enumerate(words):
            if skip:
                skip = False
            elif word in ("-o", "-MT", "-MF"):
                skip = True
            elif word in ("-c", "-MD"):
                skip = word == "-c"
            else:
                # What is compiled in as text, and where our own headers are.
                out.append(re.sub(rf"{re.escape(str(self.source))}(?=$|[\"'])", str(self.tree),
                                  word) if not word.startswith("-DDAYDREAM_BINARY") else
                           word.replace(str(self.build), str(self.tree / "build/dev")))
        while out and os.path.basename(out[0]) not in ("c++", "g++", "clang++", "g++-12"):
            out.pop(0)
        subprocess.run([*out, "-c", str(self.tree / name), "-o", str(output)],
                       cwd=self.build, check=True)
        return str(output)

    def link(self, target):
        found = [p for p in (self.tree / "tests").rglob(f"{target}.cc")]
        # Tests are linked against the libraries only.
        new = [self.compile(name) for name in self.sources()
               if not found or not name.startswith("tools/")]
        own = []
        model = target
        if found:
            name = found[0].relative_to(self.tree).as_posix()
            sibling = name
            if name not in self.commands:  # a test of the page's own: built as its neighbours are
                ending = "_fuzz.cc" if name.endswith("_fuzz.cc") else "_test.cc"
                folder = os.path.dirname(name)
                sibling = sorted(n for n in self.commands
                                 if os.path.dirname(n) == folder and n.endswith(ending))[0]
                model = os.path.basename(sibling)[:-3]
            own = [(sibling, self.compile(name, sibling))]
        ninja = shutil.which("ninja") or "ninja"
        subprocess.run([ninja, "-C", str(self.build), model], check=True, stdout=subprocess.DEVNULL)
        # A target, not a file: "golden_test" is a phony name for tests/golden_test.
        lines = subprocess.run([ninja, "-C", str(self.build), "-t", "commands", model], check=True,
                               capture_output=True, text=True).stdout.splitlines()
        words = shlex.split(lines[-1].split("&&")[1])
        for sibling, made in own:
            words = [made if w.endswith(f".dir/{os.path.relpath(sibling, 'tests')}.o") or
                     w.endswith(f".dir/{os.path.basename(sibling)}.o") else w for w in words]
        place = "" if not found else ("tests/fuzz/" if target.endswith("_fuzz") else "tests/")
        output = self.tree / "build/dev" / (place + target)
        at = words.index("-o")
        words[at + 1] = str(output)
        # Ours come first, and the old ones in the libraries do not count.
        words[1:1] = [*new, "-Wl,--allow-multiple-definition"]
        subprocess.run(words, cwd=self.build, check=True)


def build(source, folder_of_build, folder, words):
    """What `cmake --build build/dev --target A B` does in the copy."""
    assert words[:2] == ["--build", "build/dev"] and words[2] == "--target", words
    copy = Copy.__new__(Copy)
    copy.source, copy.build = pathlib.Path(source), pathlib.Path(folder_of_build)
    copy.tree = pathlib.Path(folder) / "tree"
    copy.commands = {}
    for entry in json.loads((copy.build / "compile_commands.json").read_text()):
        copy.commands[os.path.relpath(entry["file"], source)] = entry["command"]
    for target in words[3:]:
        copy.link(target)


def main():
    if sys.argv[1] == "--build":
        build(*sys.argv[2:5], sys.argv[5:])
        return
    source, built, page = (pathlib.Path(a).resolve() for a in sys.argv[1:4])
    if not (built / "build.ninja").exists() or not (built / "compile_commands.json").exists():
        print("skipped: needs a build by Ninja with compile_commands.json")
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="daydream_page_") as name:
        folder = pathlib.Path(name)
        copy = Copy(source, built, folder)
        environment = {**os.environ, "PATH": f"{copy.tools}:{os.environ['PATH']}"}
        ran = 0
        for what, where, text in read_page(page):
            if what != "run":
                copy.write(where, text, what)
                continue
            for command in text.splitlines():
                print("$", command, flush=True)
                subprocess.run(["bash", "-c", command], cwd=copy.tree, env=environment, check=True,
                               stdin=subprocess.DEVNULL)
                ran += 1
        assert ran > 0, "the page has no commands"
        # What the page says comes out is there.
        for line in re.findall(r"ends in `([^`]+)`", page.read_text()):
            assert any(line in p.read_text() for p in (copy.tree / "tests/golden").rglob("*.ddt")), line


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:
        sys.exit(f"failed: {error.cmd}")
