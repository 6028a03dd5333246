"""Programs of many kinds print the same bits with and without marks, and have the steps that
docs/recorder.md promises."""

import importlib
import importlib.util
import unittest

import harness
import programs
import programs_of_torch

harness.need_torch()


def is_there(path):
    """Whether "torch.amp.GradScaler" can be had here."""
    if path == "deepspeed":  # not imported: it starts processes, and a fork of this one waits for them
        return importlib.util.find_spec(path) is not None
    parts = path.split(".")
    for i in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:i]))
        except Exception:  # not there, or of another version than what it needs
            continue
        return all(hasattr(found := getattr(found, p, None), "__class__") and found is not None
                   for p in parts[i:])  # fmt: skip
    return False


def runs(program, record):
    text = programs.PRELUDE + program.text
    if program.whole:
        return harness.run(text, record or "", armed=record is not None)
    return harness.run_forked(text, record)


def results(out):
    """The numbers; libraries say other things, too, in any order."""
    return [line for line in out.splitlines() if line.lstrip("-").startswith(("0x", "inf", "nan"))]


class Programs(unittest.TestCase):
    def check(self, program):
        for need in program.needs:
            if not is_there(need):
                self.skipTest("there is no %s here" % need)
        plain = runs(program, None)
        self.assertEqual(plain.code, 0, plain.err)
        self.assertGreater(len(results(plain.out)), 0)
        for record in ("warmup=4;labels=2", "layers=force"):
            marked = runs(program, record)
            self.assertEqual(marked.code, 0, marked.err)
            self.assertEqual(harness.complaints(marked), [])
            self.assertEqual(results(plain.out), results(marked.out))
            self.assertTrue(harness.balanced(marked.marks))
            steps = [m.value for m in harness.of(marked.marks, "STEP")]
            if program.steps is not None:
                self.assertEqual(len(steps), program.steps)


def add(program):
    def test(self):
        self.check(program)

    name = "".join(c if c.isalnum() else "_" for c in program.name)
    setattr(Programs, "test_" + name, test)


for each in programs.ALL + programs_of_torch.ALL:
    add(each)

if __name__ == "__main__":
    harness.main()
