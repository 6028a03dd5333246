"""wheel_test.py SOURCE BUILD TORCH_PYTHON: scripts/wheel with the objects of BUILD, pip install into an empty
environment, and in there installed_*.py and the Python of README and docs/python.md; with_torch.py in a Python
that has PyTorch, when it is of the same version.

Exit code 77: skipped, as Python's headers, venv, or PyPI are missing.
"""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import time

SOURCE, BUILD = map(os.path.abspath, sys.argv[1:3])
TORCH_PYTHON = sys.argv[3]
WORK = os.path.join(BUILD, "tests", "wheel_test")
HERE = os.path.dirname(os.path.abspath(__file__))


def skip(why):
    print("skipped: " + why)
    sys.exit(77)


def run(*command, **keywords):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **keywords)
    text = done.stdout.decode("utf-8", "replace")
    if done.returncode != 0:
        print("%s: exit code %d\n%s" % (" ".join(command), done.returncode, text))
    return done.returncode, text


def expect(*command, **keywords):
    code, text = run(*command, **keywords)
    if code != 0:
        sys.exit(1)
    return text


def environment(**more):
    kept = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    return {**kept, **more}


def build():
    include = sysconfig.get_path("include")
    if not os.path.exists(os.path.join(include, "Python.h")):
        skip("no Python.h in %s (python3-dev)" % include)
    if shutil.which("ninja") is None:
        skip("no ninja")
    wheel = os.path.join(SOURCE, "scripts", "wheel")
    code, text = run(wheel, WORK, sys.executable, env=environment(DAYDREAM_BUILD=BUILD))
    if code != 0:
        for missing in ("cannot make a virtual environment", "from PyPI"):
            if missing in text:
                skip("scripts/wheel: " + missing)
        sys.exit(1)
    (made,) = [name for name in os.listdir(WORK) if name.endswith(".whl")]
    return os.path.join(WORK, made)


def install(wheel):
    """The line of the README that makes the package and installs it, but for the making: in an empty
    folder, where OUT holds the wheel. The folder of the environment, and when pip began."""
    with open(os.path.join(SOURCE, "README.md"), encoding="utf-8") as f:
        (line,) = re.findall(r"^scripts/wheel OUT && (.*)$", f.read(), re.M)
    folder = os.path.join(WORK, "as-the-readme")
    os.makedirs(os.path.join(folder, "OUT"))
    shutil.copy(wheel, os.path.join(folder, "OUT"))
    more = {"PATH": os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"], "PIP_NO_INDEX": "1"}
    print("README: " + line)
    for command in line.split(" && "):
        begun = time.monotonic()
        expect("sh", "-ec", command, env=environment(**more), cwd=folder)
    return os.path.join(folder, "venv"), begun  # of the last, which is pip


def page():
    """The Python of the README and of docs/python.md, as one program."""
    text = ""
    for name in ("README.md", os.path.join("docs", "python.md")):
        with open(os.path.join(SOURCE, name), encoding="utf-8") as f:
            found = re.findall(r"^```python\n(.*?)^```$", f.read(), re.M | re.S)
        assert found, name
        text += "\n".join(found)
    return text


def with_torch(venv, more):
    version = "%d.%d" % sys.version_info[:2]
    ask = "import sys; print('%d.%d' % sys.version_info[:2])"
    if run(TORCH_PYTHON, "-c", ask)[1].strip() != version:
        print("with_torch.py: skipped: %s is not Python %s" % (TORCH_PYTHON, version))
        return True
    site = os.path.join(venv, "lib", "python" + version, "site-packages")
    file = os.path.join(HERE, "with_torch.py")
    code, text = run(TORCH_PYTHON, file, env=environment(PYTHONPATH=site, **more), cwd=WORK)
    print("with_torch.py: " + text.strip().split("\n")[-1])
    return code == 0


# What docs/python.md says that the package needs; GCC 12 has these of libstdc++.
FLOOR = {"GLIBC": (2, 35), "GLIBCXX": (3, 4, 30), "CXXABI": (1, 3, 13)}
# The recorder goes into programs of others, also on older machines (docs/recorder.md).
RECORDER_FLOOR = {"GLIBC": (2, 28)}


def too_new(file):
    """Symbols of `file` that are newer than the floor, and libraries that neither it nor a system has."""
    recorder = os.path.basename(file) == "libdaydream_inject.so"
    floor = RECORDER_FLOOR if recorder else FLOOR
    table = expect("objdump", "-p", file)
    found = []
    for name, version in re.findall(r" (GLIBC|GLIBCXX|CXXABI)_([0-9.]+)$", table, re.M):
        if name not in floor or tuple(map(int, version.split("."))) > floor[name]:
            found.append("%s_%s" % (name, version))
    return found


def check_files(site):
    """The package holds what it should, and all of it runs on the systems that it names."""
    package = os.path.join(site, "daydream")
    wanted = ["program/bin/daydream"]
    if os.path.exists(os.path.join(BUILD, "tracer", "libdaydream_inject.so")):
        wanted += ["program/lib/daydream/libdaydream_inject.so",
                   "program/lib/daydream/python/site", "program/lib/daydream/python/daydream_torch"]
    bad = ["%s is missing" % w for w in wanted if not os.path.exists(os.path.join(package, w))]
    checked = 0
    for folder in (package, os.path.join(site, "daydream_whatif.libs")):
        for at, _, names in os.walk(folder):
            for file in (os.path.join(at, name) for name in names):
                with open(file, "rb") as f:
                    if f.read(4) != b"\x7fELF":
                        continue
                checked += 1
                bad += ["%s needs %s" % (os.path.relpath(file, site), s) for s in too_new(file)]
    print("files: %d of machine code; %s" % (checked, "; ".join(bad) or "as the page says"))
    return checked > 1 and not bad


def main():
    shutil.rmtree(WORK, ignore_errors=True)
    os.makedirs(WORK)
    wheel = build()
    venv, begun = install(wheel)
    python = os.path.join(venv, "bin", "python")
    trace = os.path.join(SOURCE, "examples", "resnet50-synthetic.ddtrace")

    first = "import daydream as dd; print(dd.load(%r).whatif('amp,fuse').step_ms)" % trace
    answer = expect(python, "-c", first, env=environment(), cwd=WORK)
    print("from pip install to the first answer (%s ms): %.1f s" % (
        answer.strip(), time.monotonic() - begun))

    more = {"DAYDREAM_SOURCE": SOURCE, "DAYDREAM_BUILT": os.path.join(BUILD, "daydream")}
    tests = [n for n in sorted(os.listdir(HERE)) if n.startswith("installed_")]
    failed = not check_files(os.path.join(venv, "lib", "python%d.%d" % sys.version_info[:2], "site-packages"))
    for test in tests:
        code, text = run(python, os.path.join(HERE, test), env=environment(**more), cwd=WORK)
        failed |= code != 0
        print("%s: %s" % (test, text.strip().split("\n")[-1]))
    failed |= not with_torch(venv, more)
    code, text = run(python, "-c", page(), env=environment(), cwd=SOURCE)
    print("README and docs/python.md: %s" % ("failed" if code else "runs"))
    sys.exit(1 if failed or code != 0 else 0)


main()
