#!/usr/bin/env python3
"""Makes the files of tests/data/vectors and their manifest.json anew.

Usage: make_vectors.py WRITE_VALID FOLDER, with the witness's folder in PYTHONPATH. Needs the
packages xxhash, zstandard and lz4.
"""

import hashlib
import json
import pathlib
import re
import subprocess
import sys

from describe import describe_valid
from edits import Editor
from refused_around import CHAIN, DELTA, SIDE, WRAPPER
from refused_details import DETAILS
from refused_header import HEADER, REGION
from refused_packed import PACKED
from refused_tensor import CHUNK, CONNECTIVITY, QUANTIZED, TENSOR
from valid_edits import add_all

DOCUMENT = pathlib.Path(__file__).resolve().parents[2] / "docs/format"
CLASSES = {"2": "FormatError", "3": "IntegrityError", "4": "UnsupportedError"}


def checklist():
    """{number: row} of docs/format/verifying.md, "Verifier's checklist"."""
    text = (DOCUMENT / "verifying.md").read_text(encoding="utf-8")
    reference = (DOCUMENT / "format.md").read_text(encoding="utf-8")
    codes = dict(re.findall(r"^\| (\d{3}) \| (\w+) \|", reference, re.MULTILINE))
    names = {name: number for number, name in codes.items()}
    rows = {}
    section = text.split("\n## Verifier's checklist\n")[1].split("\n## ")[0]
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) == 6 and re.fullmatch(r"[A-Z]\d+", cells[0]):
            number, rule, severity, findings, code, reader = cells
            assert number not in rows, number
            rows[number] = {
                "rule": re.sub(r"\[([^]]+)\]\([^)]*\)", r"\1", rule),
                "severity": severity,
                "findings": [finding.strip("` ") for finding in findings.split(",")],
                "code": code,
                "class": CLASSES.get(names[code][0], "FormatError"),
                "reader": reader == "refuses",
            }
    return rows


def torn_header(folder):
    """The header of an append that was cut off: its commit record has the state."""
    data = bytearray((folder / "appended.thalia").read_bytes())
    data[100:256] = bytes(156)
    path = folder / "torn_header.thalia"
    path.write_bytes(data)
    return {
        "file": path.name,
        "kind": "recoverable",
        "of": "appended.thalia",
        "sha256": hashlib.sha256(data).hexdigest(),
    }


# Of files that are changed as they are, not as what is in them.
WHOLE = (".zst", ".lz4", ".meta", "packed.delta.thalia")


def base_file(valid, name):
    return valid / (name if name.endswith(WHOLE) else f"{name}.thalia")


def refused_bytes(valid, case):
    sound = base_file(valid, case.base).read_bytes()
    if case.base.endswith(WHOLE):
        return case.change(sound)
    editor = Editor(sound)
    given = case.change(editor)
    return given if given is not None else editor.sealed()


def describe_refused(rules, case, name, data):
    rule = rules[case.rule]
    found = case.finding or rule["findings"][0]
    assert found in rule["findings"], (name, found, rule["findings"])
    section, _, field = found.partition(".")
    return {
        "file": name,
        "rule": case.rule,
        "of": base_file(pathlib.Path(), case.base).name,
        "severity": rule["severity"],
        "class": rule["class"],
        "code": rule["code"],
        "section": section,
        "field": field,
        "reader_refuses": rule["reader"],
        "with_base": case.rule.startswith("B"),
        "sha256": hashlib.sha256(data).hexdigest(),
    }


def lines_of(manifest):
    """JSON with a line for each rule, file and tensor."""

    def text(value):
        return json.dumps(value, separators=(",", ":"))

    def listed(entries):
        return ",\n".join(entries)

    def file(entry):
        tensors = entry.pop("tensors", None)
        if tensors is None:
            return text(entry)
        return text(entry)[:-1] + ',"tensors":[\n' + listed(map(text, tensors)) + "]}"

    rules = listed(f"{text(number)}:{text(row)}" for number, row in manifest["rules"].items())
    return (
        f'{{"version":{manifest["version"]},"rules":{{\n{rules}}},\n'
        f'"valid":[\n{listed(map(file, manifest["valid"]))}],\n'
        f'"refused":[\n{listed(map(text, manifest["refused"]))}],\n'
        f'"bases":[\n{listed(map(text, manifest["bases"]))}]}}\n'
    )


def main():
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    valid, refused = folder / "valid", folder / "refused"
    for made in valid, refused:
        made.mkdir(parents=True, exist_ok=True)
        for old in made.iterdir():
            old.unlink()
    subprocess.run([program, valid], check=True)
    add_all(valid)
    manifest = {"version": 1, "rules": checklist(), "valid": [], "refused": [], "bases": []}
    for path in sorted(valid.iterdir()):
        manifest["valid"].append(describe_valid(valid, path))
    manifest["valid"].append(torn_header(valid))
    cases = (
        HEADER + REGION + TENSOR + QUANTIZED + CHUNK + CONNECTIVITY + DELTA + CHAIN + WRAPPER + PACKED + SIDE + DETAILS
    )
    for case in cases:
        ending = "".join(pathlib.Path(base_file(valid, case.base).name).suffixes)
        ending = ending[ending.index(".thalia") :] if ".delta" not in ending else ".delta.thalia"
        name = case.file or f"{case.rule.lower()}_{case.name}{ending}"
        assert not (refused / name).exists(), name
        data = refused_bytes(valid, case)
        (refused / name).write_bytes(data)
        manifest["refused"].append(describe_refused(manifest["rules"], case, name, data))
    # Bases beside the deltas that are refused for them.
    for name in "small_base.thalia", "steps_base.thalia":
        (refused / name).write_bytes((valid / name).read_bytes())
    for path in sorted((folder / "bases").iterdir()):
        manifest["bases"].append({"file": path.name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()})
    (folder / "manifest.json").write_text(lines_of(manifest), encoding="utf-8")


if __name__ == "__main__":
    main()
