#!/usr/bin/env python3
"""What checkpoints cost a training loop: the stall of a save, and the time of the whole run.

A transformer trains on all cores and saves every few steps, with AsyncCheckpointer and with
thalia_checkpoint.torch.save, with torch.save, safetensors, and async_save of
torch.distributed.checkpoint, and not at all. They take turns, in rounds. Every save is durable, and
a run ends when its last checkpoint is. bench/README.md states the method.
"""

import argparse
import logging
import os
import pathlib
import statistics
import tempfile
import time
import warnings

from race import disk, environment
from race.report import table
from race.rounds import Contestant, Race, result, run_race
from training_run import SEED, learn, make_model, state_of, text


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    add = parser.add_argument
    add("--build", type=pathlib.Path, default=environment.ROOT / "build-bench", help="build folder")
    default = pathlib.Path(os.environ.get("THALIA_BENCH_DIR", "/var/tmp"))
    add("--dir", type=pathlib.Path, default=default, help="folder on a disk")
    add("--rounds", type=int, default=7)
    add("--steps", type=int, default=20, help="of a run (20)")
    add("--every", type=int, default=5, help="steps between two saves (5)")
    add("--layers", type=int, default=6)
    add("--width", type=int, default=512)
    add("--context", type=int, default=64)
    add("--batch", type=int, default=4)
    add("--smoke", action="store_true", help="tiny, one round: does it still run?")
    options = parser.parse_args()
    if options.smoke:
        options.rounds, options.steps, options.every, options.layers, options.width = 1, 2, 1, 1, 64
    options.frozen = 0
    return options


class Way:
    """One way to save: begin(folder), save(number) until training may go on, end() when all is durable."""

    kind = "peer"

    def __init__(self, model, optimizer):
        self.model, self.optimizer = model, optimizer

    def begin(self, folder):
        self.folder = folder

    def state(self):
        return {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}

    def path(self, number):
        """Of one of two that take turns, so that one is always whole."""
        path = self.folder / f"state-{number % 2}"
        disk.remove(path)
        return path

    def end(self):
        pass


class Ours(Way):
    name = "Thalia, AsyncCheckpointer"
    kind = "ours"

    def begin(self, folder):
        from thalia_checkpoint.torch import AsyncCheckpointer

        self.checkpoints = AsyncCheckpointer(self.model, self.optimizer, folder=folder, every=1, keep=2)

    def save(self, number):
        self.checkpoints.step(number)

    def end(self):
        self.checkpoints.wait()


class OursWaiting(Way):
    name = "Thalia, torch.save"
    kind = "ours"

    def save(self, number):
        from thalia_checkpoint.torch import save

        save({"model": self.model, "optimizer": self.optimizer, "step": number}, self.path(number))


class TorchSave(Way):
    name = "torch.save"

    def save(self, number):
        import torch

        path = self.path(number)
        torch.save({**self.state(), "step": number}, path)
        disk.make_durable(path)


class Safetensors(Way):
    name = "safetensors"

    def save(self, number):
        from safetensors.torch import save_file

        path = self.path(number)
        save_file(state_of(self.model, self.optimizer), path)
        disk.make_durable(path)


class Distributed(Way):
    name = "torch.distributed.checkpoint, async_save"

    def begin(self, folder):
        super().begin(folder)
        self.saving = None

    def save(self, number):
        import torch.distributed.checkpoint as dcp

        self.end()
        writer = dcp.FileSystemWriter(self.path(number), sync_files=True, thread_count=os.cpu_count() or 1)
        self.saving = dcp.async_save({**self.state(), "step": number}, storage_writer=writer)

    def end(self):
        if self.saving is not None:
            self.saving.result()
            self.saving = None


WAYS = (Ours, OursWaiting, TorchSave, Safetensors, Distributed)


class Bench:
    def __init__(self, options, folder):
        import torch

        torch.manual_seed(SEED)
        self.options, self.folder = options, folder
        self.data = torch.frombuffer(text(), dtype=torch.uint8)
        self.model = make_model(options)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=3e-4)
        self.step()  # makes the moments
        self.size = sum(tensor.nbytes for tensor in state_of(self.model, self.optimizer).values())

    def step(self):
        learn(self.options, self.data, self.model, self.optimizer)

    def run(self, way, stalls):
        """Seconds of a run; adds the median of its stalls."""
        found = []
        with tempfile.TemporaryDirectory(dir=self.folder) as name:
            start = time.perf_counter()
            if way is not None:
                way.begin(pathlib.Path(name))
            for step in range(1, self.options.steps + 1):
                self.step()
                if way is not None and step % self.options.every == 0:
                    before = time.perf_counter()
                    way.save(step // self.options.every)
                    found.append(time.perf_counter() - before)
            if way is not None:
                way.end()
            seconds = time.perf_counter() - start
        stalls.append(statistics.median(found) if found else 0)
        return seconds

    def races(self):
        """The race of the whole runs, and then that of the stalls in them."""
        options = self.options
        what = f"{options.steps} steps, a save of {self.size / 2**20:.0f} MiB every {options.every}"
        ways = [(way.name, way.kind, way(self.model, self.optimizer)) for way in WAYS]
        stalls = {name: [] for name, _, _ in ways}

        def contestant(name, kind, way):
            return Contestant(name, lambda: self.run(way, stalls.setdefault(name, [])), os.sync, kind)

        chosen = [contestant(*way) for way in (*ways, ("no checkpoints", "floor", None))]
        whole = Race(f"whole run, {what}", "", chosen)
        run_race(whole, options.rounds)
        yield whole
        yield Race(
            f"stall of a save, {what}",
            "",
            [
                # The first round does not count.
                Contestant(each.name, each.run, kind=each.kind, seconds=stalls[each.name][1:], failure=each.failure)
                for each in chosen
                if each.kind != "floor"
            ],
        )


def main():
    options = parse()
    environment.need("torch")
    environment.add_package(options.build)
    import torch.distributed as dist

    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    print(f"{os.cpu_count()} cores, load {load}\n", flush=True)
    with tempfile.TemporaryDirectory(prefix="thalia-stall-", dir=options.dir) as name:
        dist.init_process_group("gloo", init_method=f"file://{name}/store", rank=0, world_size=1)
        for race in Bench(options, pathlib.Path(name)).races():
            print(f"{race.name}\n\n{table(result(race))}\n", flush=True)
        dist.destroy_process_group()
    # gloo's threads may outlive the interpreter, and then abort the process.
    os._exit(0)


if __name__ == "__main__":
    main()
