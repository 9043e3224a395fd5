#!/usr/bin/env python3
"""Conversions of every format to every other and back, held against the tables of docs/use/formats.md.

formats_test.py THALIA MAKE_FILES SOURCE_ROOT            compares, and fails where anything differs
formats_test.py THALIA MAKE_FILES SOURCE_ROOT --write    writes the tables

A file of each format is converted to each other format and back. What comes back has the same
bytes wherever no loss was told on the way, and tensors of the same values wherever it was not
refused. A .thalia file with a tensor of each element type tells which of them a format holds.
"""

import filecmp
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict

THALIA = sys.argv[1]
MAKE_FILES = sys.argv[2]
ROOT = pathlib.Path(sys.argv[3])
PAGE = ROOT / "docs/use/formats.md"
DATA = ROOT / "tests/data/formats"
BEGIN, END = "<!-- {name}: written by tests/formats/formats_test.py -->", "<!-- {name} ends -->"

PLAIN = DATA / "plain.safetensors"
# Files that the formats' own programs wrote.
NATIVE = {
    "mst": "mithril/small.mst",
    "mithril-quantized": "mithril/quant_int8.zst",
    "mithril-orbax": "mithril/orbax_ck",
    "gptrs": "gptrs/rust_gpt_small.gptrschk",
    "gptrsten": "gptrs/py_mixed.gptrsten",
    "entity": "loom/dtype/int4.entity",
    "loom-json": "loom/dtype/int4.json",
    "pt": "pt/train.pt",
    "npz": "npz/stored.npz",
    "npy": "npz/array.npy",
    "gguf": "gguf/key_values.gguf",
    "onnx": "onnx/raw.onnx",
}
EXTENSIONS = {"thalia-0.1": ".v01", "loom-json": ".json", "mithril-quantized": ".zst"}  # others: their names
DTYPES = [
    "f64", "f32", "f16", "bf16", "f8_e4m3", "f8_e5m2", "f8_e8m0", "f8_e4m3fnuz", "f8_e5m2fnuz", "f6_e2m3",
    "f6_e3m2", "f4_e2m1", "i64", "i32", "i16", "i8", "i4", "i2", "u64", "u32", "u16", "u8", "u4", "u2",
    "ternary", "binary", "bool", "c64", "c128",
]  # fmt: skip


def run(*arguments):
    done = subprocess.run([THALIA, *map(str, arguments)], capture_output=True, text=True, check=False)
    if done.returncode < 0 or "Sanitizer" in done.stderr:
        raise AssertionError(f"{arguments}: status {done.returncode}: {done.stderr}")
    return done


def formats():
    """Those that are read, and those of them that are written."""
    known = json.loads(run("version", "--json").stdout)["formats"]
    refused = [name for name in known if "--to" in run("convert", "none", "none", "--to", name).stderr]
    return known, [name for name in known if name not in refused]


def same_bytes(a, b):
    if a.is_dir():
        compared = filecmp.dircmp(a, b)
        names = compared.common_files
        if compared.left_only or compared.right_only or compared.common_funny:
            return False
        same = filecmp.cmpfiles(a, b, names, shallow=False)[0]
        return same == names and all(same_bytes(a / name, b / name) for name in compared.common_dirs)
    return a.read_bytes() == b.read_bytes()


class Conversion:
    """One conversion: its losses, or why it was refused."""

    def __init__(self, source, target, from_, to):
        done = run(
            "convert", source, target, "--from", from_, "--to", to, "--json", "--reproducible", "--force"
        )  # fmt: skip
        self.refusal = None
        self.losses = []
        if done.returncode == 0:
            self.losses = json.loads(done.stdout)["losses"]
            return
        if done.returncode not in (2, 3) or target.exists():
            raise AssertionError(f"{source} to {target}: status {done.returncode}: {done.stderr}")
        error = json.loads(done.stderr)["error"]
        self.refusal = error["message"].replace(str(source), "IN").replace(str(target), "OUT")


def place(folder, format_, name):
    return folder / (name + EXTENSIONS.get(format_, "." + format_))


def make_samples(folder, known, written):
    """{label: (format, path)}: what is made of the plain file, then what programs wrote."""
    samples = {}
    for format_ in known:
        path = place(folder, format_, "plain")
        if format_ == "safetensors":
            samples[format_] = (format_, PLAIN)
        elif format_ in written and Conversion(PLAIN, path, "safetensors", format_).refusal is None:
            samples[format_] = (format_, path)
    for format_, name in NATIVE.items():
        samples[name.rpartition("/")[2]] = (format_, DATA / name)
    return samples


PROBLEMS = []


def compare_values(a, b, way):
    # Version 0.1 widens types that it has not, and tells so; a difference of nearly nothing is of types alone.
    done = run("diff", a, b, "*", *(["--atol", "1e-300"] if "thalia-0.1" in way else []))
    if done.returncode != 0:
        PROBLEMS.append(f"{way}: what came back differs:\n{done.stdout}{done.stderr}")


def cross(folder, known, written):
    """{(label, to): cell}, and {to: {sentence: [label]}} of losses and refusals."""
    samples = make_samples(folder, known, written)
    cells, told = {}, defaultdict(lambda: defaultdict(list))
    for label, (from_, sample) in samples.items():
        for to in written:
            way = f"{label} to {to}"
            there = place(folder, to, f"{label}.there")
            out = Conversion(sample, there, from_, to)
            if out.refusal is not None:
                cells[label, to] = "no"
                told[to][out.refusal].append(label)
                continue
            for loss in out.losses:
                told[to][loss].append(label)
            # A file of one array has its name.
            inside = folder / f"{label}.{to}.back"
            inside.mkdir()
            back = inside / sample.name
            home = Conversion(there, back, to, from_)
            if home.refusal is not None:
                cells[label, to] = "there"
                if not out.losses:
                    PROBLEMS.append(f"{way}: lost nothing, and back is refused: {home.refusal}")
                continue
            same = same_bytes(sample, back)
            if not same and not any("the tensor's name" in loss for loss in out.losses):
                compare_values(sample, back, way)
            # Version 0.1 has metadata of its own that a file gets on the way.
            if not same and not out.losses and not home.losses and "thalia-0.1" not in (from_, to):
                PROBLEMS.append(f"{way}: no loss was told there or back, and the bytes differ")
            cells[label, to] = "same" if same else "values"
    return cells, told


def held_types(folder, written):
    """{format: [dtypes that come back]}."""
    held = defaultdict(list)
    (folder / "made").mkdir()
    subprocess.run([MAKE_FILES, folder / "made"], check=True)
    for dtype in DTYPES:
        source = folder / "made/types" / f"{dtype}.thalia"
        for format_ in written:
            # A file of one array has its name.
            inside = folder / f"{dtype}.{format_}"
            inside.mkdir()
            there, back = place(inside, format_, "weight"), inside / "back.thalia"
            if Conversion(source, there, "thalia", format_).refusal is not None:
                continue
            if Conversion(there, back, format_, "thalia").refusal is not None:
                continue
            listed = json.loads(run("ls", "--json", "-r", back).stdout)["tensors"]
            if [tensor["dtype"] for tensor in listed] == [dtype]:
                compare_values(source, back, f"{dtype} to {format_}")
                held[format_].append(dtype)
    return held


def matrix_table(columns, cells):
    yield "| from \\ to | " + " | ".join(columns) + " |"
    yield "|---" * (len(columns) + 1) + "|"
    for label in dict.fromkeys(label for label, _ in cells):
        yield f"| {label} | " + " | ".join(cells[label, to] for to in columns) + " |"


def losses_list(told):
    for to, sentences in told.items():
        yield f"To `{to}`:"
        yield ""
        for sentence, sources in sorted(sentences.items()):
            yield f"- {sentence} ({', '.join(sources)})"
        yield ""


def types_table(written, held):
    yield "| format | element types |"
    yield "|---|---|"
    for format_ in written:
        yield f"| {format_} | {', '.join(held[format_]) or 'none of these'} |"


def renewed(text, name, lines):
    begin, end = BEGIN.format(name=name), END.format(name=name)
    head, rest = text.split(begin, 1)
    return head + begin + "\n\n" + "\n".join(lines).strip() + "\n\n" + end + rest.split(end, 1)[1]


def main():
    known, written = formats()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="thalia-formats-"))
    try:
        cells, told = cross(folder, known, written)
        held = held_types(folder, written)
    finally:
        shutil.rmtree(folder)
    if PROBLEMS:
        sys.exit("\n".join(PROBLEMS))
    before = PAGE.read_text(encoding="utf-8")
    text = renewed(before, "conversions", matrix_table(written, cells))
    text = renewed(text, "losses", losses_list(told))
    text = renewed(text, "types", types_table(written, held))
    if "--write" in sys.argv:
        PAGE.write_text(text, encoding="utf-8")
    elif text != before:
        sys.exit(f"{PAGE} lists other conversions than there are: run formats_test.py with --write")
    print(f"{len(cells)} pairs, {sum(map(len, held.values()))} element types")


main()
