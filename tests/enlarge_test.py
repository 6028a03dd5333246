"""enlarge_test.py SOURCE PROGRAM: a recording three times over has three times the events."""
import json, os, subprocess, sys, tempfile

source, program = sys.argv[1:]
folder = os.path.join(source, "examples", "imports")


def counts(path):
    out = subprocess.run([program, "info", path, "--format", "json"], capture_output=True, check=True)
    info = json.loads(out.stdout)
    return info["input_events"], info["events"]


with tempfile.TemporaryDirectory() as scratch:
    for name in ("rpd-small.rpd", "rocpd-schema3-small.db", "rocpd-schema4-small.db",
                 "rocprofv3-small.json", "chakra-small.0.et", "jax-small.xplane.pb"):
        one, longer = os.path.join(folder, name), os.path.join(scratch, name)
        subprocess.run([os.path.join(source, "scripts", "enlarge"), one, "3", longer], check=True)
        once, thrice = counts(one), counts(longer)
        assert thrice == tuple(3 * n for n in once), (name, once, thrice)
        assert once[1] > 5, (name, once)
