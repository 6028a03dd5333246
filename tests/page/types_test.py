"""The script of the page against the types of what it is given (report/html/types.d.ts).

Arguments: the folder of the sources. Debian's node-typescript has the checker, `tsc`; where there is none,
the exit code is 77.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = sys.argv[1]
FOLDER = os.path.join(SOURCE, "report", "html")


def scripts():
    """Those of the page, in the order in which CMake puts them together."""
    with open(os.path.join(SOURCE, "report", "CMakeLists.txt"), encoding="utf-8") as file:
        return [os.path.join(FOLDER, name) for name in re.findall(r"\b\w+\.js\b", file.read())]


def complaints(files):
    done = subprocess.run(
        ["tsc", "--noEmit", "--allowJs", "--checkJs", "--target", "es2022", "--lib", "es2022,dom,dom.iterable",
         os.path.join(FOLDER, "types.d.ts"), *files], capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


class Types(unittest.TestCase):
    def test_the_script_uses_what_it_is_given(self):
        found = scripts()
        self.assertEqual(set(found), {os.path.join(FOLDER, f) for f in os.listdir(FOLDER) if f.endswith(".js")})
        self.assertEqual(complaints(found), "")

    def test_a_field_that_is_misspelt_is_seen(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "wrong.js")
            with open(path, "w", encoding="utf-8") as file:
                file.write("whatif.scenarios[0].step_sn;\n")
            self.assertIn("Property 'step_sn' does not exist on type 'Scenario'", complaints([*scripts(), path]))


if __name__ == "__main__":
    if shutil.which("tsc") is None:
        print("skipped: no tsc is installed (node-typescript)")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1], verbosity=2)
