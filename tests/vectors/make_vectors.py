#!/usr/bin/env python3
"""Makes the files of tests/data/vectors and their manifest.json anew.

Usage: make_vectors.py WRITE_VALID FOLDER, with the witness's folder in PYTHONPATH. Needs the
packages xxhash, zstandard and lz4.
"""

import hashlib
import json
import pathlib
import re
import struct
import subprocess
import sys

import digests
import structures as s
from chain import APPLY, Chain
from checkpoint import Checkpoint
from edits import Editor
from refused_around import CHAIN, DELTA, SIDE, WRAPPER, with_checksums, without_table
from refused_header import HEADER, REGION
from refused_tensor import CHUNK, CONNECTIVITY, QUANTIZED, TENSOR

DOCUMENT = pathlib.Path(__file__).resolve().parents[2] / "docs"
# Encodings whose stored bytes can be looked at without a base.
ALONE = {name: APPLY[name] for name in ("sparse_delta", "low_rank_delta")}
CLASSES = {"2": "FormatError", "3": "IntegrityError", "4": "UnsupportedError"}


def checklist():
    """{number: row} of docs/verifying.md, "Verifier's checklist"."""
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


def describe_tensor(tensor, resolved):
    entry = tensor.entry
    facts = {
        "region": tensor.region.name if tensor.region else None,
        "name": tensor.name,
        "role": s.ROLES[entry.role],
        "encoding": tensor.encoding,
        "dtype": tensor.dtype,
        "shape": list(tensor.shape),
        "nnz": entry.nnz,
        "wide_indices": entry.flags & 1 == 1,
        "logical_length": entry.logical_length,
        "crc32": entry.crc32,
        "content_hash": entry.content_hash.hex(),
        "sha256": tensor.sha256(),
        "chunks": [[s.CODECS[c.codec], s.FILTERS[c.filter]] for c in tensor.chunks],
    }
    if resolved is not None:
        facts["result"] = {
            "encoding": s.ENCODINGS[tensor.side.encoding] if tensor.side else tensor.encoding,
            "bytes": len(resolved),
            "crc32": digests.crc32(resolved),
            "content_hash": digests.content_hash(resolved).hex(),
            "sha256": hashlib.sha256(resolved).hexdigest(),
        }
    return facts


def describe(file, resolved):
    """What a reader finds. resolved: {label: bytes} of tensors that come out of codes or a base."""
    header = file.header
    return {
        "generation": header.generation,
        "flags": header.flags,
        "training_steps": header.training_steps,
        "total_neurons": header.total_neurons,
        "total_synapses": header.total_synapses,
        "checksum_type": s.CHECKSUM_TYPES[header.checksum_type],
        "closing_checksum": bytes(file.data[header.file_length - 32 : header.file_length]).hex(),
        "metadata": file.metadata,
        "regions": [
            {
                "name": r.name,
                "n_neurons": r.header.n_neurons,
                "n_inputs": r.header.n_inputs,
                "neuron_type": s.NEURON_TYPES[r.header.neuron_type],
                "config": r.config,
                "metadata": r.metadata,
            }
            for r in file.regions
        ],
        "connections": [list(pair) for pair in file.connections],
        "tensors": [describe_tensor(t, resolved.get(t.label)) for t in file.tensors],
    }


def describe_valid(folder, path):
    name = path.relative_to(folder).as_posix()
    facts = {"file": name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
    if ".delta.thalia" in name and name.endswith(".thalia"):
        chain = Chain(path)
        link = chain.links[0]
        facts |= {"kind": "delta", "base": link.base_path, "depth": link.depth}
        resolved = {t.label: chain.resolve(link.key_of(t), 0)[0] for t in link.file.tensors}
        return facts | describe(link.file, resolved)
    if name.endswith((".zst", ".lz4")):
        return facts | {
            "kind": "wrapper",
            "of": path.name.rsplit(".", 1)[0].replace("_plain", "").replace("_checksums", ""),
        }
    if name.endswith(".meta"):
        return facts | {"kind": "side_file", "of": name.removesuffix(".meta")}
    file = Checkpoint(memoryview(path.read_bytes()))
    resolved = {t.label: bytes(t.restored) for t in file.tensors if t.quantized}
    return facts | {"kind": "full"} | describe(file, resolved)


def add_others_frames(folder):
    """Frames as others write them: without a seek table; and with checksums in it."""
    for ending in "zst", "lz4":
        wrapped = (folder / f"pieces.thalia.{ending}").read_bytes()
        (folder / f"pieces_plain.thalia.{ending}").write_bytes(without_table(wrapped))
        (folder / f"pieces_checksums.thalia.{ending}").write_bytes(with_checksums(wrapped))


def add_stored_chunks(folder):
    """Chunks as no writer has to make them: one that is stored, without a filter, and no other."""
    editor = Editor((folder / "lz4.thalia").read_bytes())
    tensor = editor.tensor("mixed")
    shrunk, stored = tensor.chunks
    count, before = stored.raw_length, tensor.entry.logical_length
    payload = editor.sound[stored.offset : stored.offset + count]
    crc = digests.crc32(payload)
    editor.stored("mixed", 0, payload + bytes(shrunk.stored_length), digest=False)
    editor.chunk("mixed", 0, stored_length=count, raw_length=count, crc32=crc, codec=0, filter=0)
    for i in range(24):
        editor.byte(stored.place + i, 0)
    editor.shape("mixed", count)
    editor.entry(
        "mixed",
        logical_length=count,
        stored_length=count,
        chunk_count=1,
        crc32=crc,
        content_hash=digests.content_hash(payload),
    )
    editor.payload_header("mixed", shape=struct.pack("<3Q", count, 1, 1), checksum=crc)
    editor.record(0, logical_bytes=lambda n: n - before + count, stored_bytes=lambda n: n - shrunk.stored_length)
    editor.header(total_synapses=lambda n: n - before + count)
    (folder / "stored_chunks.thalia").write_bytes(editor.sealed())


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


def base_file(valid, name):
    return valid / (name if name.endswith((".zst", ".lz4", ".meta")) else f"{name}.thalia")


def refused_bytes(valid, case):
    sound = base_file(valid, case.base).read_bytes()
    if case.base.endswith((".zst", ".lz4", ".meta")):
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
        f'"refused":[\n{listed(map(text, manifest["refused"]))}]}}\n'
    )


def main():
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    valid, refused = folder / "valid", folder / "refused"
    for made in valid, refused:
        made.mkdir(parents=True, exist_ok=True)
        for old in made.iterdir():
            old.unlink()
    subprocess.run([program, valid], check=True)
    add_others_frames(valid)
    add_stored_chunks(valid)
    manifest = {"version": 1, "rules": checklist(), "valid": [], "refused": []}
    for path in sorted(valid.iterdir()):
        manifest["valid"].append(describe_valid(valid, path))
    manifest["valid"].append(torn_header(valid))
    cases = HEADER + REGION + TENSOR + QUANTIZED + CHUNK + CONNECTIVITY + DELTA + CHAIN + WRAPPER + SIDE
    for case in cases:
        ending = "".join(pathlib.Path(base_file(valid, case.base).name).suffixes)
        ending = ending[ending.index(".thalia") :] if ".delta" not in ending else ".delta.thalia"
        name = f"{case.rule.lower()}_{case.name}{ending}"
        assert not (refused / name).exists(), name
        data = refused_bytes(valid, case)
        (refused / name).write_bytes(data)
        manifest["refused"].append(describe_refused(manifest["rules"], case, name, data))
    # A base beside the deltas that are refused for it.
    (refused / "small_base.thalia").write_bytes((valid / "small_base.thalia").read_bytes())
    (folder / "manifest.json").write_text(lines_of(manifest), encoding="utf-8")


if __name__ == "__main__":
    main()
