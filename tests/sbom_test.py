"""sbom_test.py SOURCE BUILD OUT: the list of parts names what the program was linked from."""
import hashlib, json, os, re, shutil, subprocess, sys

source, build, out = sys.argv[1:]
program = os.path.join(build, "daydream")
for needed in ("ninja", "readelf", "ldd", "dpkg"):
    if shutil.which(needed) is None:
        print(f"skipped: there is no {needed}")
        sys.exit(77)
subprocess.run([os.path.join(source, "scripts", "sbom"), build, out], check=True)
with open(out) as file:
    document = json.load(file)
packages = {p["SPDXID"]: p for p in document["packages"]}
own = packages["SPDXRef-daydream"]
with open(program, "rb") as file:
    assert own["checksums"][0]["checksumValue"] == hashlib.sha256(file.read()).hexdigest()
version = subprocess.run([program, "--version"], capture_output=True, text=True).stdout
assert own["versionInfo"] in version, (own["versionInfo"], version)

# Every library that the loader will look for stands there, with what belongs to it.
wanted = re.findall(r"\(NEEDED\).*\[(.*)\]", subprocess.run(
    ["readelf", "-d", program], capture_output=True, text=True).stdout)
assert len(wanted) > 3, wanted
related = {r["relatedSpdxElement"] for r in document["relationships"]
           if r["spdxElementId"] == "SPDXRef-daydream"}
assert related <= packages.keys() and len(related) > 3
for name in ("libzstd", "libsqlite3", "libprotobuf", "boost"):
    part = [p for key, p in packages.items() if name in p["name"] and key in related]
    assert part and part[0].get("versionInfo"), name
# What Debian says of a licence in words that SPDX has, too, is handed on; nothing else is made up.
licences = {p["licenseDeclared"] for p in packages.values()}
assert licences <= {"NOASSERTION", "Apache-2.0", "BSL-1.0", "MIT", "X11", "BSD-2-Clause",
                    "BSD-3-Clause"}, licences
print(f"{len(packages)} packages")
