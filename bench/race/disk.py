"""Files and folders of the contestants, and the disk under them."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile

from .rounds import Unable

FIO_BLOCK = 4 << 20
FIO_DEPTH = 16


def files_of(path):
    """The file, or every file of the folder."""
    path = pathlib.Path(path)
    return [each for each in path.rglob("*") if each.is_file()] if path.is_dir() else [path]


def sync(path):
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
        sync(each)


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


def _huge_pages():
    """Whether as many huge pages are free as fio needs for its buffers."""
    facts = dict(line.split(":") for line in pathlib.Path("/proc/meminfo").read_text(encoding="ascii").splitlines())
    free = int(facts.get("HugePages_Free", "0")) * int(facts.get("Hugepagesize", "0 kB").split()[0]) * 1024
    return free >= FIO_BLOCK * (FIO_DEPTH + 1)


def floor_name():
    """What fio() does, for the tables."""
    pages = "huge" if _huge_pages() else "ordinary"
    return f"fio O_DIRECT io_uring, {FIO_DEPTH} of 4 MiB, registered buffers in {pages} pages"


def fio(path, size, way):
    """Seconds that fio takes to write (with fsync) or read, as fast as it does it.

    It moves whole blocks; what is left of the size counts as if it took its share of the time.
    """
    if not shutil.which("fio"):
        raise Unable("fio is not installed")
    block = FIO_BLOCK if size >= FIO_BLOCK else 1 << 20
    whole = max(block, size // block * block)
    # Where it keeps its state would be the current folder.
    with tempfile.TemporaryDirectory(prefix="thalia-fio-") as folder:
        command = ["fio", "--name=floor", f"--filename={path}", f"--rw={way}", f"--size={whole}"]
        command += [f"--bs={block}", f"--iodepth={FIO_DEPTH}", "--ioengine=io_uring"]
        command += ["--direct=1", "--thread", "--fixedbufs=1"]
        command += ["--mem=mmaphuge" if _huge_pages() else "--mem=mmap"]
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
