#!/usr/bin/env python3
"""Files of other formats: Thalia's Python package beside the packages whose formats they are.

.pt, .safetensors, .npz, .gguf and .onnx files with the same weights are read whole, opened for one of
many tensors, and converted; blocks of GGUF are made numbers. Beside them torch, safetensors, numpy,
gguf and onnx do the same, and the machine what it can. They take turns, in rounds. bench/README.md
states the method.
"""

import argparse
import logging
import os
import pathlib
import shutil
import signal
import sys
import tempfile
import warnings

from peers import facts_of
from race import environment, weights
from race.formats import FormatBench
from race.ours import Ours
from race.rounds import Unable
from race.session import Session

PACKAGES = ("numpy", "torch", "safetensors", "gguf", "onnx")
FORMATS = ("pt", "safetensors", "npz", "gguf", "onnx")
CONVERSIONS = (
    ("safetensors", "pt"),
    ("safetensors", "npz"),
    ("safetensors", "gguf"),
    ("safetensors", "onnx"),
    ("pt", "safetensors"),
)


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    add = parser.add_argument
    add("--build", type=pathlib.Path, default=environment.ROOT / "build-bench", help="build folder")
    default = pathlib.Path(os.environ.get("THALIA_BENCH_DIR", "/var/tmp"))
    add("--dir", type=pathlib.Path, default=default, help="folder on a disk")
    add("--out", type=pathlib.Path, help="folder for table, plot and samples (BUILD/formats)")
    add("--rounds", type=int, default=7)
    add("--mib", type=int, default=1024, help="size of the weights, below 2048 for ONNX (1024)")
    add("--smoke", action="store_true", help="tiny, one round, with the packages that are there: does it still run?")
    add("--only", action="append", default=[], help="only races whose name holds this; may be repeated")
    options = parser.parse_args()
    if options.smoke:
        options.mib, options.rounds = 1, 1
    options.without_peers = options.smoke
    options.out = options.out or options.build / "formats"
    return options


class Formats(Session):
    """Thalia and the packages of other formats."""

    def __init__(self, options, ours, folder):
        super().__init__("formats", options, facts_of(options))
        self.size = options.mib << 20
        self.small = 100 if options.smoke else 20_000
        tensors = {"model": lambda: weights.model(self.size), "small": lambda: weights.small(self.small)}
        self.bench = FormatBench(ours, folder, tensors)

    def run(self):
        for format in FORMATS:
            self.try_race(f"open {format}, one of {self.small:,} tensors", self.bench.one, "small", format)
        for format in FORMATS:
            self.try_race(f"read {format}, {self.options.mib} MiB", self.bench.whole, "model", format)
        for type in weights.BLOCKS:
            self.try_race(f"dequantize {type}, {self.options.mib} MiB of f32", self.bench.dequantized, type, self.size)
        for how, durable in (("convert durably", True), ("convert, not durable", False)):
            for source, target in CONVERSIONS:
                name = f"{how}, {source} to {target}, {self.options.mib} MiB"
                self.try_race(name, self.bench.converted, "model", source, target, durable)

    def try_race(self, name, make, *words):
        if not self.wants(name):
            return
        try:
            race = make(name, *words)
        except Unable as error:
            print(f"\n{name}: {error}", flush=True)
        else:
            self.race(race)

    def check(self):
        """@raise Unable where somebody failed who is there."""
        for each in self.results:
            for row in each["rows"]:
                if not row.get("failure", "not installed").startswith("not installed"):
                    raise Unable(f"{each['name']}: {row['name']}: {row['failure']}")


def main(options):
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    # So that the folder goes away.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("formats.py: ended"))
    environment.add_package(options.build)
    try:
        need = 10 * (options.mib << 20)
        if shutil.disk_usage(options.dir).free < need:
            raise Unable(f"{options.dir}: {need >> 20} MiB needed")
        ours = Ours(options.build)
        with tempfile.TemporaryDirectory(dir=options.dir, prefix="thalia-formats-") as folder:
            session = Formats(options, ours, pathlib.Path(folder))
            session.run()
        ours.close()
        if options.smoke:
            session.check()
    except (Unable, OSError) as error:
        sys.exit(f"formats.py: {error}")


if __name__ == "__main__":
    chosen = parse()
    for package in () if chosen.smoke else PACKAGES:
        environment.need(package)
    main(chosen)
