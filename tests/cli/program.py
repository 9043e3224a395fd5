"""The program and its files, for tests that need more than a transcript: see signals_test.py."""

import json
import os
import pathlib
import struct
import subprocess
import sys

THALIA, MAKE_FILES, INTERRUPTION = (str(pathlib.Path(path).resolve()) for path in sys.argv[1:4])


def run(folder, command, environment=None, preexec_fn=None):
    """The result of the program with the words of the command, in the folder."""
    return subprocess.run(
        [THALIA, *command.split()],
        cwd=folder,
        env={**os.environ, **(environment or {})},
        preexec_fn=preexec_fn,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
    )


def make_files(folder):
    """Puts the files of make_files.cc there, and one of each format made of them."""
    subprocess.run([MAKE_FILES, folder], check=True)
    for command in (
        "convert model.safetensors model.thalia",
        "convert model.safetensors model.mckp",
        "migrate model.thalia old.thalia --to 0.1",
        "delta basic.thalia grown.thalia later.delta.thalia",
        "compress large.thalia large.thalia.zst",
    ):
        result = run(folder, command)
        assert result.returncode == 0, (command, result.stderr)


def write_safetensors(path, tensors, shape=None):
    """{name: numbers} as f32, with one shape for all, or in one dimension."""
    header, data = {}, b""
    for name, values in tensors.items():
        packed = struct.pack(f"<{len(values)}f", *values)
        ends = [len(data), len(data) + len(packed)]
        header[name] = {"dtype": "F32", "shape": shape or [len(values)], "data_offsets": ends}
        data += packed
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
