"""The software bill of materials of a release, in CycloneDX: the shared libraries that the wheels carry, as auditwheel
found them, what is compiled into wheels and Debian packages, and the files of the release with their digests.

usage: bill.py VERSION DIST
"""

import hashlib
import json
import os
import re
import subprocess
import sys
import uuid
import zipfile
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

# Libraries of templates, which are compiled in and leave no file behind: the Debian packages that have them.
COMPILED_IN = ("libeigen3-dev", "libcli11-dev", "libtomlplusplus-dev")


def debian_version(package):
    command = ["dpkg-query", "-W", "-f", "${Version}", package]
    return subprocess.run(command, check=True, capture_output=True, encoding="utf-8").stdout


def component(name, version, purl):
    return {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}


def carried(wheel):
    """The components of auditwheel's own bill, without the wheel itself."""
    with zipfile.ZipFile(wheel) as files:
        for name in files.namelist():
            if name.endswith("/sboms/auditwheel.cdx.json"):
                bill = json.loads(files.read(name))
                return [part for part in bill["components"] if part["purl"] != bill["metadata"]["component"]["purl"]]
    sys.exit(f"{wheel}: has no bill of auditwheel's")


def compiled_into(package):
    """The components that a Debian package says were compiled in: source packages, each with its version."""
    command = ["dpkg-deb", "-f", os.fspath(package), "Static-Built-Using"]
    field = subprocess.run(command, check=True, capture_output=True, encoding="utf-8").stdout
    for name, version in re.findall(r"(\S+) \(= (\S+)\)", field):
        yield component(name, version, f"pkg:deb/debian/{name}@{version}?arch=source")


def bill_of(version, folder):
    wheels = sorted(folder.glob("*.whl"))
    if not wheels:
        sys.exit(f"{folder} has no wheels")
    parts = {
        part["purl"]: component(part["name"], part["version"], part["purl"]) for w in wheels for part in carried(w)
    }
    for package in COMPILED_IN:
        found = debian_version(package)
        purl = f"pkg:deb/debian/{package}@{found}"
        parts[purl] = component(package, found, purl)
    for package in sorted(folder.glob("debian/*.deb")):
        parts.update((part["purl"], part) for part in compiled_into(package))
    nanobind = metadata.version("nanobind")
    purl = f"pkg:pypi/nanobind@{nanobind}"
    parts[purl] = component("nanobind", nanobind, purl)

    files = []
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        if path.name.endswith(".cdx.json") or path.name == "SHA256SUMS":
            continue
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        name = path.relative_to(folder).as_posix()
        hashes = [{"alg": "SHA-256", "content": digest}]
        files.append({"type": "file", "bom-ref": f"file:{name}", "name": name, "hashes": hashes})
    components = [parts[purl] for purl in sorted(parts)] + files
    main = {"type": "library", "bom-ref": "thalia", "name": "thalia", "version": version}
    time = datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), UTC)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        # From what it says, so that equal releases have equal bills.
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, json.dumps(components, sort_keys=True))}",
        "version": 1,
        "metadata": {"timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ"), "component": main},
        "components": components,
        "dependencies": [{"ref": "thalia", "dependsOn": sorted(parts)}],
    }


def main():
    version, folder = sys.argv[1], Path(sys.argv[2])
    path = folder / f"thalia-{version}.cdx.json"
    bill = bill_of(version, folder)
    path.write_text(json.dumps(bill, indent=2) + "\n", encoding="utf-8")
    libraries = [part for part in bill["components"] if part["type"] == "library"]
    for part in libraries:
        print(f"{part['name']} {part['version']}")
    print(f"{path.name}: {len(libraries)} libraries, {len(bill['components']) - len(libraries)} files")


if __name__ == "__main__":
    main()
