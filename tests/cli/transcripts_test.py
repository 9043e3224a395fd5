"""Runs the transcripts beside this file: what somebody types, and all that comes back.

A transcript holds lines "$ COMMAND", each followed by what the command prints to standard output
with "| " before each line, its standard error with "! ", and "[STATUS]" where that is not 0.
Lines that start with "#" are comments.

    transcripts_test.py [--accept] THALIA MAKE_FILES [NAME...]

--accept writes what comes back now into the transcripts. Each transcript runs in a folder of its
own with the files of make_files.cc in it. Commands are run by bash; "flip FILE OFFSET" changes the
lowest bit of a byte, "overwrite FILE OFFSET HEX" some bytes; "safetensors FILE NAME=DTYPE:SHAPE…"
writes tensors of zeros.
"""

import argparse
import ctypes
import difflib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
# What differs from run to run.
CHANGING = [
    (re.compile(r"\b\d+\.\d\d s\b"), "N s"),
    (re.compile(r'"seconds":[-+.e\d]+'), '"seconds":N'),
]
HELPERS = {
    "flip": """#!/usr/bin/env python3
import sys
with open(sys.argv[1], "r+b") as file:
    file.seek(int(sys.argv[2]))
    byte = file.read(1)[0]
    file.seek(int(sys.argv[2]))
    file.write(bytes([byte ^ 1]))
""",
    "overwrite": """#!/usr/bin/env python3
import sys
with open(sys.argv[1], "r+b") as file:
    file.seek(int(sys.argv[2]))
    file.write(bytes.fromhex(sys.argv[3]))
""",
    "safetensors": """#!/usr/bin/env python3
import json, math, struct, sys
header, end = {}, 0
for tensor in sys.argv[2:]:
    name, _, layout = tensor.partition("=")
    dtype, _, extents = layout.partition(":")
    shape = [int(extent) for extent in extents.split(",") if extent]
    size = {"F32": 4, "F16": 2, "I32": 4, "I64": 8}.get(dtype, 1) * math.prod(shape)
    header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [end, end + size]}
    end += size
text = json.dumps(header).encode()
with open(sys.argv[1], "wb") as file:
    file.write(struct.pack("<Q", len(text)) + text + bytes(end))
""",
}


# Debian 12's: the sizes in the transcripts are of what it packs.
ZSTD = b"1.5.4"
NUMBER = re.compile(r"\d+")


def same_zstd():
    version = ctypes.CDLL("libzstd.so.1").ZSTD_versionString
    version.restype = ctypes.c_char_p
    return version() == ZSTD


def alike(expected, played):
    """Whether all that differs is what another zstd packs a little better or worse."""
    if len(expected) != len(played):
        return False
    for one, other in zip(expected, played, strict=True):
        if one == other:
            continue
        if one.startswith("[") or NUMBER.sub("N", one) != NUMBER.sub("N", other):
            return False
        pairs = zip(map(int, NUMBER.findall(one)), map(int, NUMBER.findall(other)), strict=True)
        if any(abs(a - b) > max(2, a // 100) for a, b in pairs):
            return False
    return True


def run_command(command, folder, environment):
    result = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=120,
        check=False,
    )
    text = ""
    for mark, output in ("|", result.stdout), ("!", result.stderr):
        lines = output.decode("utf-8", "backslashreplace").split("\n")
        if lines[-1]:
            lines[-1] += "(no newline)"
        else:
            lines.pop()
        text += "".join(f"{mark} {line}".rstrip() + "\n" for line in lines)
    if result.returncode:
        text += f"[{result.returncode}]\n"
    for pattern, replacement in CHANGING:
        text = pattern.sub(replacement, text)
    return text


def play(transcript, files, environment):
    with tempfile.TemporaryDirectory(prefix="thalia-transcript-") as folder:
        shutil.copytree(files, folder, dirs_exist_ok=True)
        played = ""
        for line in transcript.splitlines():
            if line.startswith(("|", "!", "[")):
                continue
            played += line + "\n"
            if line.startswith("$ "):
                played += run_command(line[2:], folder, environment)
        return played


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--accept", action="store_true")
    parser.add_argument("thalia", type=pathlib.Path)
    parser.add_argument("make_files", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()

    failed = 0
    with tempfile.TemporaryDirectory(prefix="thalia-files-") as work:
        files = pathlib.Path(work, "files")
        helpers = pathlib.Path(work, "bin")
        files.mkdir()
        helpers.mkdir()
        for name, text in HELPERS.items():
            helper = helpers / name
            helper.write_text(text)
            helper.chmod(0o755)
        subprocess.run([arguments.make_files.resolve(), files], check=True)
        folders = [str(arguments.thalia.resolve().parent), str(helpers), os.environ["PATH"]]
        environment = {**os.environ, "PATH": ":".join(folders), "LC_ALL": "C.UTF-8", "TZ": "UTC"}

        for path in sorted((HERE / "transcripts").glob("*.txt")):
            if arguments.names and path.stem not in arguments.names:
                continue
            expected = path.read_text(encoding="utf-8")
            played = play(expected, files, environment)
            if played == expected:
                continue
            if not arguments.accept and not same_zstd() and alike(expected.splitlines(), played.splitlines()):
                print(f"{path.name}: with sizes of another zstd")
                continue
            if arguments.accept:
                path.write_text(played, encoding="utf-8")
                print(f"accepted {path.name}")
                continue
            failed += 1
            sys.stdout.writelines(
                difflib.unified_diff(expected.splitlines(True), played.splitlines(True), path.name, "played")
            )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
