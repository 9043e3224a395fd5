"""The races over files of other formats: read whole, opened for one tensor, dequantized, converted."""

import concurrent.futures
import gc
import mmap
import os
import shutil
import time

from . import disk, packages, weights
from .format_files import FormatFiles
from .races import SYNCED, UNSYNCED, WARM
from .rounds import Contestant, Race
from .state import check_samples, flat_bytes, samples

AS_FAST = ("at least", 1.0)
NEAR = ("at least", 0.8)  # of what the machine can do
READ = "until every byte of it is read; freeing is not counted"


def read_bytes(arrays):
    """Reads every byte, whatever it is aligned to."""
    for array in arrays.values():
        flat_bytes(array).max()


def load_mapped(path):
    """The whole file as one array, in the mapping."""
    import numpy

    with open(path, "rb") as file:
        return {"file": numpy.frombuffer(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ), "u1")}


def load_with_thalia(path, writable=False, **options):
    import thalia_checkpoint

    with thalia_checkpoint.open(path, **options) as file:
        return {name: tensor.numpy(writable=writable) for name, tensor in file.tensors.items()}


def find_with_thalia(path, name):
    import thalia_checkpoint

    with thalia_checkpoint.open(path) as file:
        return file[name].numpy()


def write_memory(count, size):
    """`count` new arrays of `size` bytes, written by all cores."""
    import numpy

    arrays = {i: numpy.empty(size, "u1") for i in range(count)}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as threads:
        list(threads.map(lambda array: array.fill(1), arrays.values()))
    return arrays


class FormatBench:
    """The races, over files in a folder. A race has the name that it is given."""

    def __init__(self, ours, folder, tensors):
        self.ours = ours
        self.files = FormatFiles(folder, tensors, self._settle)

    def whole(self, name, stem, format):
        """All tensors, in the mapping where they can be."""
        path = self.files.file(stem, format)
        expected = samples(self.files.arrays(stem))
        ways = [
            ("Thalia, views", "ours", load_with_thalia),
            ("Thalia, copies", "ours", lambda path: load_with_thalia(path, writable=True)),
            *((label, "peer", load) for label, load in self.files.ways(format, "loads").items()),
        ]
        contestants = [self._reading(*way, path, expected) for way in ways]
        contestants.append(self._reading("floor: a mapping of the file", "floor", load_mapped, path))
        return self._race(name, WARM + READ, contestants, path.stat().st_size)

    def one(self, name, stem, format):
        """Opened, and one of its tensors read."""
        path = self.files.file(stem, format)
        arrays = self.files.arrays(stem)
        tensor = list(arrays)[len(arrays) // 3]
        expected = {tensor: flat_bytes(arrays[tensor]).copy()}

        def reading(label, kind, find):
            return self._reading(label, kind, lambda path: {tensor: find(path, tensor)}, path, expected)

        finds = self.files.ways(format, "finds")
        contestants = [reading("Thalia", "ours", find_with_thalia)]
        contestants += [reading(label, "peer", find) for label, find in finds.items()]
        return self._race(name, WARM + READ, contestants)

    def dequantized(self, name, type, size):
        """`size` bytes of f32 out of blocks of GGUF. @raise Unable where its package is not installed."""
        package = self.files.package("gguf")
        path = self.files.path(type, "gguf")
        package.write(weights.blocks(type, size), path, type)
        loaded = package.restored(path)
        expected = samples(loaded)
        count, each = len(loaded), next(iter(loaded.values())).nbytes
        del loaded
        contestants = [
            self._reading("Thalia", "ours", lambda path: load_with_thalia(path, dequantize=True), path, expected),
            self._reading("gguf.quants.dequantize", "peer", package.restored, path, expected),
            self._reading("floor: new memory, by all cores", "floor", lambda _: write_memory(count, each), path),
        ]
        return self._race(name, WARM + READ, contestants, count * each, near=None)

    def converted(self, name, stem, source, target, durable):
        """From a file to a file."""
        path = self.files.file(stem, source)

        def ours(out):
            import thalia_checkpoint

            thalia_checkpoint.convert(path, out, durability="full" if durable else "none")

        def theirs(out):
            load = next(iter(self.files.package(source).loads.values()))
            self.files.package(target).write(packages.numpy_arrays(load(path)), out)

        writer = next(kind.writer for kind in packages.ALL if kind.name == target)
        ways = [
            ("Thalia", "ours", ours),
            (f"{source} loaded, {writer}", "peer", theirs),
            ("floor: a copy of the source", "floor", lambda out: shutil.copyfile(path, out)),
        ]
        contestants = [self._writing(*way, path, self.files.path("converted", target), durable) for way in ways]
        conditions = f"the source in the page cache; {SYNCED if durable else UNSYNCED}"
        return self._race(name, conditions, contestants, path.stat().st_size)

    def _race(self, name, conditions, contestants, bytes=0, near=NEAR):
        kinds = {"peer": AS_FAST, "floor": near}
        aims = {each.name: kinds[each.kind] for each in contestants if kinds.get(each.kind)}
        return Race(name, conditions, contestants, bytes, aims)

    def _reading(self, label, kind, load, path, expected=None):
        unchecked = [expected] if expected else []

        def run():
            start = time.perf_counter()
            loaded = load(path)
            read_bytes(loaded)
            seconds = time.perf_counter() - start
            if unchecked:  # in the round that does not count
                check_samples(unchecked.pop(), loaded)
            return seconds

        return Contestant(label, run, lambda: self._warm(path), kind)

    def _writing(self, label, kind, write, source, out, durable):
        def prepare():
            disk.remove(out)
            self._settle()
            self._warm(source)

        def run():
            start = time.perf_counter()
            write(out)
            if durable and kind != "ours":
                disk.make_durable(out)
            seconds = time.perf_counter() - start
            disk.remove(out)
            return seconds

        return Contestant(label, run, prepare, kind)

    def _settle(self):
        self.ours("settle", self.files.folder)

    def _warm(self, path):
        gc.collect()
        disk.warm(path)
        self.ours("touch", self.files.folder, path.stat().st_size)
