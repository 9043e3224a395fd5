#!/usr/bin/env python3
"""Thalia beside its peers and the disk: saving, loading and opening the same state.

torch.save and torch.load, safetensors, torch.distributed.checkpoint, h5py, tensorstore, Orbax,
fastsafetensors and Run:ai's model streamer run in this process, and so does this library's Python
package; the library itself in the program peer_side of the build folder, each timing itself; the
floor is fio. They take turns, in rounds. The
peers are installed into .venv-bench on the first run. bench/README.md states the method.
"""

import argparse
import importlib.util
import logging
import os
import pathlib
import platform
import shutil
import signal
import sys
import tempfile
import warnings

from race import environment
from race.disk import available_memory, files_of
from race.ours import Ours
from race.rounds import Unable
from race.session import Session

TENSOR_BYTES = 16 << 20
SMALL_BYTES = 4096
SMALL = ("save, not durable, ", "durable save, ")  # beginnings of the names over many tensors
LARGE = (  # beginnings of the names of the races over the large state
    "durable save, ",
    "save, not durable, ",
    "save in the background, ",
    "cold load into memory that is there, ",
    "cold load, ",
    "warm load into memory that is there, ",
    "warm load, ",
    "Python, written durably, ",
    "Python, written, not durable, ",
    "Python, read into memory, ",
    "Python, mapped, ",
)


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    add = parser.add_argument
    add("--build", type=pathlib.Path, default=environment.ROOT / "build-bench", help="build folder")
    default = pathlib.Path(os.environ.get("THALIA_BENCH_DIR", "/var/tmp"))
    add("--dir", type=pathlib.Path, default=default, help="folder on a disk")
    add("--out", type=pathlib.Path, help="folder for table, plot and samples (BUILD/peers)")
    add("--rounds", type=int, default=7)
    add("--mib", type=int, default=4096, help="size of the state (4096)")
    add("--quick", action="store_true", help="256 MiB, three rounds: two minutes")
    add("--smoke", action="store_true", help="tiny, one round, no peers: does it still run?")
    add(
        "--data",
        choices=("f32", "bf16", "training"),
        default="f32",
        help="normal weights, or a training run's state",
    )
    add(
        "--only",
        action="append",
        default=[],
        help="only races whose name holds this; may be repeated",
    )
    add(
        "--peer",
        action="append",
        default=[],
        help="only peers whose name holds this; may be repeated",
    )
    add("--without-peers", action="store_true", help="only Thalia and the floors; installs nothing")
    options = parser.parse_args()
    if options.quick:
        options.mib, options.rounds = 256, 3
    if options.smoke:
        options.mib, options.rounds, options.without_peers = 1, 1, True
    options.out = options.out or options.build / "peers"
    return options


def check_room(options, size):
    free = shutil.disk_usage(options.dir).free
    if free < 12 * size:
        raise Unable(f"{options.dir}: {free >> 20} MiB free, {12 * size >> 20} MiB needed")
    if available_memory() < 5 * size:
        raise Unable(f"{available_memory() >> 20} MiB of memory free, {5 * size >> 20} MiB needed")


def processor():
    cores = f"{os.cpu_count()} cores"
    for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return f"{line.split(':', 1)[1].strip()}, {cores}"
    return f"{platform.machine()}, {cores}"


def facts_of(options):
    facts = {
        "rounds": options.rounds,
        "processor": processor(),
        "kernel": platform.release(),
        "load before": f"{os.getloadavg()[0]:.1f}",
    }
    if not options.without_peers:
        from importlib.metadata import PackageNotFoundError, version

        found = []
        text = environment.REQUIREMENTS.read_text(encoding="utf-8")
        for package in (each.split("==")[0] for each in environment.requirements(text)):
            try:
                found.append(f"{package} {version(package)}")
            except PackageNotFoundError:
                found.append(f"{package} not installed")
        facts["peers"] = ", ".join(found)
    return facts


class Peers(Session):
    """Thalia and its peers over the same states."""

    def __init__(self, options, ours, folder):
        super().__init__("peers", options, facts_of(options))
        self.ours = ours
        self.folder = folder

    def wants_some(self, beginnings, what):
        """Of races whose names begin so; before the exact size is known."""
        return any(self.wants(name + what) for name in beginnings)

    def state(self, source):
        """A bench over the state of a safetensors file. Both sides hold it in memory."""
        from race.state import read_state

        self.ours("state", source)
        arrays = read_state(source) if importlib.util.find_spec("numpy") else None
        size = source.stat().st_size // 4096 * 4096  # what a floor can write past the page cache
        source.unlink()
        return self.bench(arrays, size)

    def bench(self, arrays, size):
        from race.python import PythonBench

        wanted = None if self.options.without_peers else self.options.peer
        return PythonBench(self.ours, self.folder, arrays, size, wanted)

    def large(self):
        source = self.folder / "source.safetensors"
        if self.options.data == "training":
            from race.training import train

            train(source, self.options.mib << 20, self.say)
        else:
            count = max(1, (self.options.mib << 20) // TENSOR_BYTES)
            each = min(TENSOR_BYTES, self.options.mib << 20)
            self.ours("make", self.options.data, count, each, source)
        bench = self.state(source)
        what = f"{bench.size / 2**20:.0f} MiB of {self.options.data}"
        extra = self.ours("memory", self.folder / "saved.thalia") / 2**20
        self.facts["extra memory of a durable save"] = f"{extra:.0f} MiB, the aim 128 at most"
        self.race(bench.save_durable(what))
        self.race(bench.save_unsynced(what))
        self.race(bench.save_background(what))
        self.race(bench.written(what, durable=True))
        self.race(bench.written(what, durable=False))
        in_place = bench.loads_in_place(what)
        afresh = [*bench.loads_afresh(what), bench.copied(what), bench.mapped(what)]
        if any(self.wants(race.name) for race in in_place + afresh):
            bench.make_files(self.say)
            for race in in_place:
                self.race(race)
            bench.forget_state()
            for race in afresh:
                self.race(race)
        self.clear()

    def small(self):
        count = 100 if self.options.smoke else 10_000 if self.options.quick else 100_000
        what = f"{count:,} tensors of 4 KiB"
        if not self.wants_some(SMALL, what):
            return
        source = self.folder / "source.safetensors"
        self.ours("make", "f32", count, SMALL_BYTES, source)
        bench = self.state(source)
        self.race(bench.save_small(what, durable=False))
        self.race(bench.save_small(what, durable=True))
        self.clear()

    def tiny(self):
        """Of many tensors that are next to nothing, what each costs the Python package."""
        from race.python import a_tensor

        count = 100 if self.options.smoke else 10_000
        what = f"{count:,} tensors of 64 bytes"
        if not self.wants_some(LARGE, f"{what}, time a tensor"):
            return
        source = self.folder / "source.safetensors"
        self.ours("make", "f32", count, 64, source)
        bench = self.state(source)
        self.race(a_tensor(bench.written(what, durable=False), count))
        bench.make_files(self.say)
        self.race(a_tensor(bench.copied(what), count))
        self.race(a_tensor(bench.mapped(what), count))
        self.clear()

    def importing(self):
        from race.python import imports

        self.race(imports(self.folder, self.options.without_peers))
        self.clear()

    def opening(self):
        for count in (1_000,) if self.options.smoke else (1_000, 10_000, 100_000, 1_000_000):
            if self.options.quick and count > 100_000:
                continue
            bench = self.bench({}, 0)
            if self.wants("open"):
                self.race(bench.open_one(count))
                self.clear()

    def clear(self):
        from race.disk import remove

        self.ours("forget")
        for path in self.folder.iterdir():
            remove(path)


def main(options):
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    # So that the folder goes away.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("peers.py: ended"))
    environment.add_package(options.build)
    try:
        check_room(options, options.mib << 20)
        ours = Ours(options.build)
        with tempfile.TemporaryDirectory(dir=options.dir, prefix="thalia-peers-") as folder:
            session = Peers(options, ours, pathlib.Path(folder))
            session.opening()
            session.small()
            session.tiny()
            session.importing()
            if session.wants_some(LARGE, f"{options.mib} MiB of {options.data}"):
                session.large()
        ours.close()
        print("\n" + "\n".join(str(path) for path in sorted(files_of(options.out))))
    except (Unable, OSError) as error:
        sys.exit(f"peers.py: {error}")


if __name__ == "__main__":
    chosen = parse()
    if not chosen.without_peers:
        environment.enter()
    main(chosen)
