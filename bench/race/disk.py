"""Files and folders of the contestants, and the disk under them."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile

from .rounds import Unable


def files_of(path):
    """The file, or every file of the folder."""
    path = pathlib.Path(path)
    return [each for each in path.rglob("*") if each.is_file()] if path.is_dir() else [path]


def _sync(path):
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_durable(path):
    """fsync of every file and folder of it, and of the folder it is in."""
    path = pathlib.Path(path)
    folders = [each for each in path.rglob("*") if each.is_dir()] if path.is_dir() else []
    for each in [*files_of(path), *folders, path, path.parent]:
        _sync(each)


def remove(path):
    path = pathlib.Path(path)
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def warm(path):
    """Reads everything once, so that it is in the page cache."""
    buffer = bytearray(1 << 20)
    for each in files_of(path):
        with open(each, "rb", buffering=0) as file:
            while file.readinto(buffer):
                pass


def available_memory():
    for line in pathlib.Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return 0


def fio(path, size, way):
    """Seconds that fio takes to write (with fsync) or read: O_DIRECT, io_uring, 16 of 1 MiB at a time.

    It moves whole MiB; what is left of the size counts as if it took its share of the time.
    """
    if not shutil.which("fio"):
        raise Unable("fio is not installed")
    whole = max(1, size >> 20) << 20
    # Where it keeps its state would be the current folder.
    with tempfile.TemporaryDirectory(prefix="thalia-fio-") as folder:
        command = ["fio", "--name=floor", f"--filename={path}", f"--rw={way}", f"--size={whole}"]
        command += ["--bs=1M", "--iodepth=16", "--ioengine=io_uring", "--direct=1", "--thread"]
        command += ["--invalidate=0", "--output-format=json", f"--aux-path={folder}"]
        if way == "write":
            command += ["--end_fsync=1", "--fallocate=native"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    if done.returncode:
        raise Unable(f"fio: {done.stderr.strip() or done.stdout.strip()[-200:]}")
    job = json.loads(done.stdout[done.stdout.index("{") :])["jobs"][0]
    if job["error"] or job[way]["io_bytes"] != whole:
        raise Unable(f"fio: error {job['error']}, {job[way]['io_bytes']} of {whole} bytes")
    return job[way]["runtime"] / 1000 * size / whole
