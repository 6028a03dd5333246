"""Puts a wheel together: pack.py BUILD WORK OUT.

BUILD is a build folder of daydream, WORK/build that of the module. The program stands in the package,
daydream/program, laid out as `cmake --install` does; the command is a line of Python that starts it.
auditwheel then adds the libraries that a machine may lack, under names of their own, and names the
oldest glibc in the file's name: it refuses symbols that are newer than the platform it names.
"""

import glob
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
# The oldest C library that the package may need; Debian 12 has 2.36, Ubuntu 22.04 has 2.35.
FLOOR = (2, 35)

METADATA = """Metadata-Version: 2.1
Name: daydream-whatif
Version: {version}
Summary: Predicts what an optimization of a GPU training step would bring
License: Apache-2.0
Requires-Python: {python}
Provides-Extra: pandas
Requires-Dist: pandas; extra == 'pandas'
Provides-Extra: polars
Requires-Dist: polars; extra == 'polars'
Description-Content-Type: text/markdown

{text}"""


def read(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as f:
        return f.read()


def write(text, *path):
    name = os.path.join(*path)
    os.makedirs(os.path.dirname(name), exist_ok=True)
    with open(name, "w", encoding="utf-8") as f:
        f.write(text)


def run(*command):
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def stage_program(build, folder):
    """The program, and the recorder where there is one, laid out as cmake/install.cmake does."""
    recorder = os.path.join(folder, "lib", "daydream")
    os.makedirs(os.path.join(folder, "bin"))
    os.makedirs(recorder)
    program = shutil.copy(os.path.join(build, "daydream"), os.path.join(folder, "bin"))
    run("strip", program)
    inject = os.path.join(build, "tracer", "libdaydream_inject.so")
    if not os.path.exists(inject):
        return
    run("strip", "--strip-unneeded", shutil.copy(inject, recorder))
    for extension in glob.glob(os.path.join(build, "tracer", "_daydream_marks.*so")):
        shutil.copy(extension, recorder)
    for part in ("site", "daydream_torch"):
        shutil.copytree(
            os.path.join(ROOT, "python", part),
            os.path.join(recorder, "python", part),
            ignore=shutil.ignore_patterns("__pycache__"),
        )
    os.makedirs(os.path.join(folder, "include"))
    shutil.copy(os.path.join(ROOT, "tracer", "daydream_mark.h"), os.path.join(folder, "include"))


def stage(build, work, folder):
    """The files of the wheel; returns its tag."""
    version = re.search(r"project\(daydream VERSION ([0-9.]+)", read("CMakeLists.txt")).group(1)
    with open(os.path.join(work, "build", "module.txt"), encoding="utf-8") as f:
        module = f.read()
    stable = ".abi3." in os.path.basename(module)
    this = "cp%d%d" % sys.version_info[:2]
    tag = "%s-%s-linux_%s" % (this, "abi3" if stable else this, os.uname().machine)

    package = os.path.join(folder, "daydream")
    shutil.copytree(
        os.path.join(HERE, "daydream"), package, ignore=shutil.ignore_patterns("__pycache__")
    )
    shutil.copy(module, package)
    stage_program(build, os.path.join(package, "program"))

    name = os.path.join(folder, "daydream_whatif-" + version)
    os.makedirs(name + ".data/scripts")
    shutil.copy(os.path.join(HERE, "scripts", "daydream"), name + ".data/scripts/daydream")
    page = subprocess.run(
        [os.path.join(package, "program", "bin", "daydream"), "help", "--man"],
        check=True, stdout=subprocess.PIPE,
    )
    write(page.stdout.decode("utf-8"), name + ".data/data/share/man/man1/daydream.1")
    os.makedirs(name + ".dist-info/licenses")
    shutil.copy(os.path.join(ROOT, "LICENSE"), name + ".dist-info/licenses/LICENSE")
    python = ">=%d.%d" % sys.version_info[:2]
    if not stable:
        python += ",<%d.%d" % (sys.version_info[0], sys.version_info[1] + 1)
    text = read("docs", "python.md")
    write(METADATA.format(version=version, python=python, text=text), name + ".dist-info/METADATA")
    write(
        "Wheel-Version: 1.0\nGenerator: daydream\nRoot-Is-Purelib: false\nTag: %s\n" % tag,
        name + ".dist-info/WHEEL",
    )
    return "daydream_whatif-%s-%s" % (version, tag)


def check_floor(wheel):
    """The platform in a wheel's name, manylinux_2_35, is not newer than FLOOR."""
    needs = max(tuple(map(int, m)) for m in re.findall(r"manylinux_(\d+)_(\d+)", wheel))
    if needs > FLOOR:
        sys.exit("wheel: %s needs glibc %d.%d, newer than %d.%d" % ((wheel,) + needs + FLOOR))
    return "%d.%d" % needs


def main(build, work, out):
    folder = os.path.join(work, "stage")
    shutil.rmtree(folder, ignore_errors=True)
    name = stage(build, work, folder)
    plain = os.path.join(work, "plain")
    shutil.rmtree(plain, ignore_errors=True)
    os.makedirs(plain)
    run(sys.executable, "-m", "wheel", "pack", folder, "--dest-dir", plain)
    repaired = os.path.join(work, "repaired")
    shutil.rmtree(repaired, ignore_errors=True)
    run(
        *(sys.executable, "-m", "auditwheel", "repair", "--only-plat"),
        *("--wheel-dir", repaired, os.path.join(plain, name + ".whl")),
    )
    (wheel,) = os.listdir(repaired)
    floor = check_floor(wheel)
    shutil.copy(os.path.join(repaired, wheel), out)
    print("wheel: %s: glibc %s or newer, Python as named" % (wheel, floor))


if __name__ == "__main__":
    main(*sys.argv[1:])
