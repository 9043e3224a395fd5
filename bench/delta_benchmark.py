#!/usr/bin/env python3
"""Deltas of consecutive checkpoints of a training run: bytes, time to write, time to restore.

Ours, exact and with a threshold, beside `zstd --patch-from`, beside mithril's way (one exclusive or
of the whole payload, its bytes grouped by their place in the element, zstd 3), and beside each
checkpoint compressed by itself. Then the same checkpoints saved in a run by its default policy: after
each save the newest is read through its chain, beside a full file of it, compressed and as it is. The
checkpoints are those of bench/training_run.py, which runs first where its folder is empty. bench/README.md
states the method.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

from race import environment

METHODS = (
    "full, raw",
    "full, zstd -3",
    "thalia delta",
    "thalia delta --threshold",
    "zstd -3 --patch-from",
    "exclusive or, bytes grouped, zstd -3",
)


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    add = parser.add_argument
    add("--build", type=pathlib.Path, default=environment.ROOT / "build-bench", help="build folder")
    default = pathlib.Path(os.environ.get("THALIA_BENCH_DIR", "/var/tmp"))
    add("--dir", type=pathlib.Path, default=default, help="folder on a disk")
    add("--run", type=pathlib.Path, help="checkpoints (DIR/thalia-training-run)")
    add("--kind", choices=("f32", "bf16"), default="f32", help="with moments, or weights alone")
    add("--checkpoints", type=int, default=10)
    add("--threshold", type=float, default=1e-5)
    add("--rounds", type=int, default=5, help="of the restores (5)")
    add("--only-policy", action="store_true", help="what the default policy of a run makes, alone")
    options = parser.parse_args()
    options.run = options.run or options.dir / "thalia-training-run"
    return options


def timed(*command):
    start = time.perf_counter()
    subprocess.run([str(part) for part in command], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def grouped_difference(base, now, width, out):
    """The payloads' exclusive or with the bytes of one place in the element side by side."""
    import numpy

    old, new = (numpy.fromfile(path, dtype=numpy.uint8) for path in (base, now))
    header = 8 + int.from_bytes(new[:8].tobytes(), "little")
    difference = old[header:] ^ new[header:]
    difference = difference[: len(difference) // width * width]
    numpy.ascontiguousarray(difference.reshape(-1, width).T).tofile(out)


class Methods:
    """Each writes checkpoint `i` into the folder and says (bytes, seconds)."""

    def __init__(self, options, folder):
        self.options = options
        self.folder = folder
        self.program = options.build / "src/cli/thalia"

    def source(self, i):
        return self.options.run / f"{self.options.kind}-{i:02}.safetensors"

    def full(self, i):
        return self.folder / f"{i:02}.thalia"

    def chain(self, i):
        return self.folder / f"{i:02}.delta.thalia" if i else self.full(0)

    def measure(self, method, i):
        out = self.folder / "out"
        out.unlink(missing_ok=True)
        width = 4 if self.options.kind == "f32" else 2
        if method == "full, raw":
            out = self.full(i)
            spent = timed(self.program, "convert", self.source(i), out)
        elif method == "full, zstd -3":
            spent = timed("zstd", "-q", "-3", "-T0", self.source(i), "-o", out)
        elif method == "thalia delta":
            out = self.chain(i)
            spent = timed(self.program, "delta", self.chain(i - 1), self.full(i), out)
        elif method == "thalia delta --threshold":
            limit = ("--threshold", self.options.threshold)
            out = self.folder / f"lossy-{i:02}.delta.thalia"
            base = self.full(0) if i == 1 else self.folder / f"lossy-{i - 1:02}.delta.thalia"
            spent = timed(self.program, "delta", base, self.full(i), out, *limit)
        elif method == "zstd -3 --patch-from":
            patch = f"--patch-from={self.source(i - 1)}"
            spent = timed("zstd", "-q", "-3", "-T0", patch, self.source(i), "-o", out)
        else:
            start = time.perf_counter()
            plane = self.folder / "planes"
            grouped_difference(self.source(i - 1), self.source(i), width, plane)
            spent = time.perf_counter() - start + timed("zstd", "-q", "-3", plane, "-o", out)
        return out.stat().st_size, spent


def table_of(results, whole):
    rows = ["| method | bytes, median | of the full file | seconds, median |", "|---|---|---|---|"]
    for method, samples in results.items():
        size = statistics.median(size for size, _ in samples)
        spent = statistics.median(spent for _, spent in samples)
        rows.append(f"| {method} | {size:,.0f} | {size / whole:.3f} | {spent:.2f} |")
    return "\n".join(rows)


def read_in_turn(options, *files):
    """Seconds of reading each of the files, in rounds."""
    command = [options.build / "bench/chain_read", options.rounds, *files]
    lines = subprocess.run(
        [str(part) for part in command], check=True, capture_output=True, text=True
    ).stdout.splitlines()
    return [tuple(float(part) for part in line.split()) for line in lines]


def restore(options, methods, last):
    """The rounds of reading a chain beside its resolved file."""
    resolved = methods.folder / "resolved.thalia"
    resolved.unlink(missing_ok=True)
    timed(methods.program, "resolve", methods.chain(last), resolved)
    return read_in_turn(options, methods.chain(last), resolved)


def median_ratio(samples, over):
    return statistics.median(sample[0] / sample[over] for sample in samples)


def by_policy(options, methods):
    """A run of the default policy: a row for each save, and the worst ratio beside a compressed file."""
    run, packed = methods.folder / "run", methods.folder / "packed.thalia"
    timed(methods.program, "store", "init", run)
    print("| save | depth | bytes | of the full file | read by a compressed full file | by a raw one |")
    print("|---|---|---|---|---|---|")
    ratios = []
    for i in range(options.checkpoints):
        full = methods.full(i)
        if not full.exists():
            methods.measure("full, raw", i)
        timed(methods.program, "store", "save", run, full, "--step", i + 1)
        packed.unlink(missing_ok=True)
        timed(methods.program, "convert", full, packed, "--codec", "plane_entropy")
        listed = subprocess.run(
            [methods.program, "store", "list", run, "--json"], check=True, capture_output=True, text=True
        )
        newest = json.loads(listed.stdout)["run"]["phases"][0]["checkpoints"][-1]
        path = run / "main/checkpoints" / newest["file"]
        samples = read_in_turn(options, path, packed, full)
        ratios.append(median_ratio(samples, 1))
        share = newest["file_bytes"] / full.stat().st_size
        print(
            f"| {i + 1} | {newest['depth']} | {newest['file_bytes']:,} | {share:.3f} "
            f"| {ratios[-1]:.2f} | {median_ratio(samples, 2):.2f} |",
            flush=True,
        )
    print(f"\nthe newest by a compressed full file: {statistics.median(ratios):.2f}, at most {max(ratios):.2f}")


def run(options, folder):
    methods = Methods(options, folder)
    methods.measure("full, raw", 0)
    if options.only_policy:
        by_policy(options, methods)
        return
    results = {method: [] for method in METHODS}
    for i in range(1, options.checkpoints):
        for method in METHODS:
            results[method].append(methods.measure(method, i))
        print(f"checkpoint {i}", file=sys.stderr, flush=True)
    whole = methods.full(0).stat().st_size
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    print(f"{options.kind}, {whole:,} bytes a checkpoint, load {load}\n")
    print(table_of(results, whole))
    samples = restore(options, methods, options.checkpoints - 1)
    chain, full = (statistics.median(side) for side in zip(*samples, strict=True))
    ratio = median_ratio(samples, 1)
    depth = options.checkpoints - 1
    print(f"\nchain of {depth} read in {chain:.3f} s, its full file in {full:.3f} s: {ratio:.2f}\n")
    by_policy(options, methods)


def main():
    options = parse()
    environment.enter()
    if not list(options.run.glob(f"{options.kind}-*.safetensors")):
        script = pathlib.Path(__file__).with_name("training_run.py")
        wanted = ("--checkpoints", str(options.checkpoints))
        subprocess.run([sys.executable, script, options.run, *wanted], check=True)
    with tempfile.TemporaryDirectory(prefix="thalia-deltas-", dir=options.dir) as name:
        run(options, pathlib.Path(name))


if __name__ == "__main__":
    main()
