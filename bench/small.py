#!/usr/bin/env python3
"""Checkpoints of about 1 MB: Thalia's Python package beside safetensors.

A state of one, ten or a hundred tensors is saved durably, and loaded from the page cache. Beside
Thalia safetensors does the same, followed by the syncs and the rename that make a file safe. They
take turns, in rounds. bench/README.md states the method.
"""

import argparse
import functools
import gc
import logging
import os
import pathlib
import statistics
import sys
import tempfile
import warnings

from peers import facts_of
from race import disk, environment
from race.rounds import Contestant, Race, Unable
from race.session import Session
from race.state import check_samples, samples, seconds_of, touch

COUNTS = (1, 10, 100)
SIZE = 1_000_000
SEED = 20
# Thalia's functions, and the names of the files that they save and load.
WAYS = (
    ("save_file", "load_file", ".safetensors"),
    ("save_file", "load_file", ".thalia"),
    ("save", "load", ".thalia"),
)
AS_FAST = ("at least", 1.0)
SYNCED = "file and folder fsynced, and the name given in between; before each run the folder is synced"
NEW = f"{SYNCED}, without the file of the run before"
OLD = f"{SYNCED}, and the file of the run before is replaced"
WARM = "the file in the page cache"
RETURNED = f"{WARM}, until the call is back; freeing is not counted"
READ = f"{WARM}, until a byte of every page is read; freeing is not counted"


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    add = parser.add_argument
    add("--build", type=pathlib.Path, default=environment.ROOT / "build-bench", help="build folder")
    default = pathlib.Path(os.environ.get("THALIA_BENCH_DIR", "/var/tmp"))
    add("--dir", type=pathlib.Path, default=default, help="folder on a disk")
    add("--out", type=pathlib.Path, help="folder for table, plot and samples (BUILD/small)")
    add("--rounds", type=int, default=51)
    add("--smoke", action="store_true", help="one round: does it still run?")
    add("--only", action="append", default=[], help="only races whose name holds this; may be repeated")
    options = parser.parse_args()
    # A load is over before anything else on the machine has a turn: the median of several counts.
    options.repeats = 11
    if options.smoke:
        options.rounds, options.repeats = 1, 1
    options.without_peers = False
    options.out = options.out or options.build / "small"
    return options


def make_state(count):
    import torch

    generator = torch.Generator().manual_seed(SEED)
    shape = (SIZE // 4 // count,)
    return {f"layers.{i}.weight": torch.randn(shape, generator=generator) for i in range(count)}


def save_as_thalia_does(save, state, path):
    """What Thalia does for a file that outlives a power loss, and that nobody ever sees a part of."""
    temporary = path.with_name(f".{path.name}.tmp")
    save(state, temporary)
    disk.sync(temporary)
    os.rename(temporary, path)
    disk.sync(path.parent)


class Small(Session):
    """Thalia and safetensors over the same states."""

    def __init__(self, options, folder):
        super().__init__("small", options, facts_of(options))
        self.folder = folder

    def run(self):
        for count in COUNTS:
            self._races(make_state(count), f"1 MB in {count} tensor{'s' if count > 1 else ''}")

    def _races(self, state, what):
        import safetensors.torch as theirs
        import thalia_checkpoint.torch as ours

        def their_save(path):
            save_as_thalia_does(theirs.save_file, state, path)

        for save, load, suffix in WAYS:
            path, other = self.folder / f"ours{suffix}", self.folder / "theirs.safetensors"
            our_save = functools.partial(getattr(ours, save), state)
            for how, conditions, replaced in (("new", NEW, False), ("replaced", OLD, True)):
                contestants = [
                    self._saving(save, "ours", our_save, path, replaced),
                    self._saving("safetensors", "peer", their_save, other, replaced),
                ]
                self._try(f"durable save, {how}, {save} {suffix}, {what}", conditions, contestants)
            our_save(path)
            their_save(other)
            for how, conditions, use in (("", RETURNED, None), (" and read", READ, touch)):
                contestants = [
                    self._loading(load, "ours", getattr(ours, load), path, use, samples(state)),
                    self._loading("safetensors", "peer", theirs.load_file, other, use, samples(state)),
                ]
                self._try(f"load{how}, {load} {suffix}, {what}", conditions, contestants)

    def _try(self, name, conditions, contestants):
        aims = {each.name: AS_FAST for each in contestants if each.kind == "peer"}
        self.race(Race(name, conditions, contestants, 0, aims))

    def _saving(self, name, kind, save, path, replaced):
        def prepare():
            if not replaced:
                disk.remove(path)
            disk.sync(path.parent)

        return Contestant(name, lambda: seconds_of(lambda: save(path)), prepare, kind)

    def _loading(self, name, kind, load, path, use, expected):
        unchecked = [expected]

        def once():
            loaded = None

            def all_of_it():
                nonlocal loaded
                loaded = load(path)
                if use:
                    use(loaded)

            seconds = seconds_of(all_of_it)
            if unchecked:  # in the round that does not count
                check_samples(unchecked.pop(), loaded)
            return seconds

        def run():
            return statistics.median(once() for _ in range(self.options.repeats))

        return Contestant(name, run, gc.collect, kind)

    def check(self):
        """@raise Unable where somebody failed."""
        for each in self.results:
            for row in each["rows"]:
                if "failure" in row:
                    raise Unable(f"{each['name']}: {row['name']}: {row['failure']}")


def main(options):
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    environment.add_package(options.build)
    try:
        with tempfile.TemporaryDirectory(dir=options.dir, prefix="thalia-small-") as folder:
            session = Small(options, pathlib.Path(folder))
            session.run()
        if options.smoke:
            session.check()
    except (Unable, OSError) as error:
        sys.exit(f"small.py: {error}")


if __name__ == "__main__":
    chosen = parse()
    for package in ("torch", "safetensors"):
        environment.need(package)
    main(chosen)
