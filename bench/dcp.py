#!/usr/bin/env python3
"""torch.distributed.checkpoint with Thalia's storage beside its own: save, load, stall, bytes.

Some ranks on this machine, over gloo, hold one state of sharded tensors. ThaliaStorageWriter and
Reader, FileSystemWriter and Reader take turns, in rounds; a time is that of the slowest rank. The
package is that of the build folder, or of PYTHONPATH. bench/README.md states the method.
"""

import argparse
import logging
import os
import pathlib
import tempfile
import time
import warnings

from race import disk, environment
from race.report import number_text, table
from race.rounds import Contestant, Race, result, run_race

TENSOR_BYTES = 16 << 20


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    add = parser.add_argument
    add("--build", type=pathlib.Path, default=environment.ROOT / "build-bench", help="build folder")
    default = pathlib.Path(os.environ.get("THALIA_BENCH_DIR", "/var/tmp"))
    add("--dir", type=pathlib.Path, default=default, help="folder on a disk")
    add("--ranks", type=int, default=2)
    add("--rounds", type=int, default=7)
    add("--mib", type=int, default=1024, help="size of the state, of all ranks (1024)")
    add("--smoke", action="store_true", help="tiny, one round: does it still run?")
    options = parser.parse_args()
    if options.smoke:
        options.mib, options.rounds = 16, 1
    return options


class Side:
    """One way to save and load, and what the last save left."""

    def __init__(self, name, kind, writer, reader):
        self.name = name
        self.kind = kind
        self.writer = writer
        self.reader = reader


def sides(durable):
    from thalia_checkpoint.dcp import ThaliaStorageReader, ThaliaStorageWriter
    from torch.distributed.checkpoint import FileSystemReader, FileSystemWriter

    durability = "full" if durable else "none"

    def ours(**more):
        return lambda path: ThaliaStorageWriter(path, durability=durability, **more)

    def theirs(threads):
        return lambda path: FileSystemWriter(path, sync_files=durable, thread_count=threads)

    cores = os.cpu_count() or 1
    return [
        Side("Thalia", "ours", ours(), ThaliaStorageReader),
        Side("Thalia, unverified", "other", ours(), lambda path: ThaliaStorageReader(path, verify=False)),
        Side("Thalia, plane_entropy", "other", ours(compression="plane_entropy"), ThaliaStorageReader),
        Side("Thalia, a file for all ranks", "other", ours(ranks_per_file=1 << 20), ThaliaStorageReader),
        Side("FileSystemWriter", "peer", theirs(1), FileSystemReader),
        Side(f"FileSystemWriter, {cores} threads", "peer", theirs(cores), FileSystemReader),
    ]


class Bench:
    """A rank's part of the races. All ranks run the same ones in the same order."""

    def __init__(self, options, folder):
        import torch
        import torch.distributed as dist
        import torch.distributed.checkpoint as dcp
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.tensor import DTensor, Shard

        self.torch, self.dist, self.dcp = torch, dist, dcp
        self.options, self.folder = options, folder
        self.first = dist.get_rank() == 0
        self.group = dist.new_group(backend="gloo")  # a save in the background has the other
        mesh = init_device_mesh("cpu", (options.ranks,))
        count = max(1, (options.mib << 20) // TENSOR_BYTES)
        generator = torch.Generator().manual_seed(dist.get_rank())
        rows = 2048 // options.ranks
        self.size = count * rows * options.ranks * 2048 * 4

        def state(placement, shape):
            parts = [torch.empty(shape).normal_(0, 0.02, generator=generator) for _ in range(count)]
            return {f"layers.{i}.weight": DTensor.from_local(p, mesh, [placement]) for i, p in enumerate(parts)}

        self.by_rows = state(Shard(0), (rows, 2048))
        self.by_columns = state(Shard(1), (2048, rows))

    def timed(self, act):
        """Seconds of the slowest rank."""
        self.dist.barrier(self.group)
        start = time.perf_counter()
        act()
        longest = self.torch.tensor(time.perf_counter() - start, dtype=self.torch.float64)
        self.dist.all_reduce(longest, op=self.dist.ReduceOp.MAX, group=self.group)
        return float(longest)

    def path(self, side):
        return self.folder / side.name.replace(" ", "-")

    def remove(self, side):
        if self.first and self.path(side).exists():
            disk.remove(self.path(side))
        os.sync()
        self.dist.barrier(self.group)

    def save(self, side):
        self.dcp.save(self.by_rows, storage_writer=side.writer(self.path(side)))

    def saves(self, name, durable):
        def contestant(side):
            return Contestant(
                side.name, lambda: self.timed(lambda: self.save(side)), lambda: self.remove(side), side.kind
            )

        return Race(name, "", [contestant(side) for side in sides(durable) if "unverified" not in side.name], self.size)

    def stalls(self, name):
        from torch.distributed.checkpoint.staging import DefaultStager, StagingOptions

        def contestant(side, name, stager):
            saving = []

            def start():
                saving.append(
                    self.dcp.async_save(self.by_rows, storage_writer=side.writer(self.path(side)), async_stager=stager)
                )

            def run():
                seconds = self.timed(start)
                saving.pop().result()
                return seconds

            return Contestant(name, run, lambda: self.remove(side), side.kind)

        chosen = [side for side in sides(True) if "," not in side.name]
        contestants = [contestant(side, side.name, None) for side in chosen]
        # Without one that is given, FileSystemWriter brings its own, and dcp makes one for ours.
        for side in chosen:
            kept = DefaultStager(StagingOptions(False, False, False, False))
            contestants.append(contestant(side, f"{side.name}, a DefaultStager that is kept", kept))
        return Race(name, "", contestants)

    def loads(self, name, target):
        def contestant(side):
            def load():
                self.dcp.load(target, storage_reader=side.reader(self.path(side)))

            return Contestant(side.name, lambda: self.timed(load), kind=side.kind)

        return Race(name, "", [contestant(side) for side in sides(False)], self.size)

    def make_files(self):
        for side in sides(False):
            self.remove(side)
            self.save(side)
            if self.first:
                disk.warm(self.path(side))
                size = sum(file.stat().st_size for file in disk.files_of(self.path(side)))
                print(f"{side.name}: {number_text(size / 2**20)} MiB", flush=True)
            self.dist.barrier(self.group)

    def run(self):
        what = f"{self.size / 2**20:.0f} MiB of f32 in {self.options.ranks} ranks"
        self.show(self.saves(f"durable save, {what}", True))
        self.show(self.saves(f"save, not durable, {what}", False))
        self.show(self.stalls(f"async_save until it is back, {what}"))
        self.make_files()
        self.show(self.loads(f"warm load, sharded as saved, {what}", self.by_rows))
        self.show(self.loads(f"warm load, sharded by columns, {what}", self.by_columns))

    def show(self, race):
        run_race(race, self.options.rounds)
        if self.first:
            print(f"\n{race.name}\n{table(result(race))}\n", flush=True)


def rank_main(rank, options, folder):
    import torch
    import torch.distributed as dist

    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    torch.set_num_threads(max(1, (os.cpu_count() or 1) // options.ranks))
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=options.ranks)
    Bench(options, folder).run()
    dist.barrier()
    dist.destroy_process_group()
    # gloo's threads may outlive the interpreter, and then abort the process.
    os._exit(0)


def main():
    options = parse()
    environment.need("torch")
    environment.add_package(options.build)
    import torch.multiprocessing

    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    print(f"{options.ranks} ranks, {os.cpu_count()} cores, load {load}\n", flush=True)
    with tempfile.TemporaryDirectory(prefix="thalia-dcp-", dir=options.dir) as name:
        torch.multiprocessing.spawn(rank_main, (options, pathlib.Path(name)), options.ranks)


if __name__ == "__main__":
    main()
