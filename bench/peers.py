#!/usr/bin/env python3
"""Thalia beside the safetensors package for Python: opening, loading, saving.

Both sides work on the same tensors on the same file system, by turns: safetensors in this process,
Thalia in the program peer_side of the build folder, each timing itself. A ratio is the peer's time
by ours, the median over the pairs; above 1, we are faster. The packages are installed into
.venv-bench on the first run.
"""

import argparse
import filecmp
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import venv

ROOT = pathlib.Path(__file__).resolve().parent.parent
ENVIRONMENT = ROOT / ".venv-bench"
REQUIREMENTS = ROOT / "bench/requirements.txt"


def enter_environment():
    """Makes the virtual environment where it is missing or old, and goes on in its Python."""
    if pathlib.Path(sys.prefix) == ENVIRONMENT:
        return
    python = ENVIRONMENT / "bin/python3"
    stamp = ENVIRONMENT / "requirements.txt"
    if not stamp.exists() or not filecmp.cmp(stamp, REQUIREMENTS, shallow=False):
        venv.create(ENVIRONMENT, clear=True, with_pip=True)
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "-r", REQUIREMENTS], check=True)
        stamp.write_bytes(REQUIREMENTS.read_bytes())
    os.execv(python, [str(python), *sys.argv])


class Ours:
    """The program that does our side; it answers each command with seconds."""

    def __init__(self, build):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self._process = subprocess.Popen([build / "bench/peer_side"], **pipes)

    def __call__(self, *words):
        self._process.stdin.write(" ".join(map(str, words)) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer or answer.startswith("error"):
            raise RuntimeError(f"peer_side: {answer.strip() or 'ended'}")
        return float(answer)


def seconds_of(step, runs=1):
    start = time.perf_counter()
    for _ in range(runs):
        step()
    return (time.perf_counter() - start) / runs


def touch(array):
    """Reads one byte of each page."""
    array.reshape(-1).view("u1")[::4096].sum()


class Bench:
    def __init__(self, ours, folder, pairs):
        self.ours = ours
        self.folder = folder
        self.pairs = pairs
        self.results = []

    def compare(self, name, ours, peer, prepare=lambda: None):
        """ours and peer return seconds; a first pair warms up and does not count."""
        samples = []
        for i in range(self.pairs + 1):
            sides = [("ours", ours), ("peer", peer)]
            pair = {}
            for side, run in sides if i % 2 else reversed(sides):
                prepare()
                pair[side] = run()
            samples.append(pair)
        samples = samples[1:]
        ratios = [pair["peer"] / pair["ours"] for pair in samples]
        result = {
            "name": name,
            "ours_seconds": statistics.median(pair["ours"] for pair in samples),
            "peer_seconds": statistics.median(pair["peer"] for pair in samples),
            "median": statistics.median(ratios),
            "min": min(ratios),
            "max": max(ratios),
        }
        self.results.append(result)
        print(
            f"{name:50} ours {result['ours_seconds'] * 1e3:10.3f} ms"
            f"  peer {result['peer_seconds'] * 1e3:10.3f} ms"
            f"  ratio {result['median']:.3g} ({result['min']:.3g} to {result['max']:.3g})",
            flush=True,
        )

    def make(self, count, size):
        """The same tensors as a .thalia and as a .safetensors file, written back to the disk."""
        paths = self.folder / f"{count}.thalia", self.folder / f"{count}.safetensors"
        self.ours("make", count, size, *paths)
        os.sync()
        return paths

    def open_one(self, count):
        import safetensors

        ours, peer = self.make(count, 64)
        wanted = f"layers.{count // 3 // 8}.w{count // 3 % 8}"

        def open_peer():
            with safetensors.safe_open(peer, framework="numpy") as file:
                touch(file.get_tensor(wanted))

        self.compare(
            f"open, read one of {count}",
            lambda: self.ours("open", ours, wanted, 50),
            lambda: seconds_of(open_peer, 1 if count > 10_000 else 10),
        )

    def load_all(self, count, size, name):
        import safetensors.numpy

        ours, peer = self.make(count, size)

        def load_peer():
            for array in safetensors.numpy.load_file(peer).values():
                touch(array)

        self.compare(
            f"load, warm, {name}", lambda: self.ours("load", ours), lambda: seconds_of(load_peer)
        )

    def save_all(self, count, size, name, sync):
        import safetensors.numpy

        _, source = self.make(count, size)
        tensors = safetensors.numpy.load_file(source)
        ours, peer = self.folder / "saved.thalia", self.folder / "saved.safetensors"

        def save_peer():
            safetensors.numpy.save_file(tensors, peer)
            if sync:
                with open(peer, "rb") as file:
                    os.fsync(file.fileno())

        def clear():
            ours.unlink(missing_ok=True)
            peer.unlink(missing_ok=True)
            os.sync()

        self.compare(
            f"save, {'synced' if sync else 'not synced'}, {name}",
            lambda: self.ours("save", ours, source, "full" if sync else "none"),
            lambda: seconds_of(save_peer),
            clear,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build", help="build folder")
    default = os.environ.get("THALIA_BENCH_DIR", "/var/tmp")
    parser.add_argument("--dir", default=default, help="folder on a disk")
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--mib", type=int, default=512, help="size of what is saved and loaded")
    parser.add_argument("--json", type=pathlib.Path, help="write the results there too")
    options = parser.parse_args()

    with tempfile.TemporaryDirectory(dir=options.dir, prefix="thalia-peers-") as folder:
        bench = Bench(Ours(options.build), pathlib.Path(folder), options.pairs)
        for count in (1_000, 10_000, 100_000):
            bench.open_one(count)
        large = options.mib // 16, 16 << 20, f"{options.mib} MiB in tensors of 16 MiB"
        small = 100_000, 4096, "100000 tensors of 4 KiB"
        for sizes in (large, small):
            bench.load_all(*sizes)
            bench.save_all(*sizes, sync=False)
            bench.save_all(*sizes, sync=True)
        if options.json:
            options.json.write_text(json.dumps(bench.results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    enter_environment()
    main()
