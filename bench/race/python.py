"""The races of the Python package: beside the program, and beside the peers in the same process."""

import dataclasses
import os
import statistics
import subprocess
import sys

from . import peers
from .races import SYNCED, TOUCHED, UNSYNCED, WARM, Bench
from .rounds import Contestant, Race, Unable

AS_FAST = round(1 / 1.05, 3)  # the package may take 1.05 of the program's time
A_TENSOR = 20e-6  # seconds
AN_IMPORT = 50e-3
PROGRAM = "Thalia in C++"
COPIES = (peers.NumpyFile, peers.TorchFile, peers.TorchObject)
MAPPINGS = (peers.NumpyMapped, peers.TorchObjectMapped)
IMPORTED = ("thalia_checkpoint", "thalia_checkpoint.numpy", "safetensors", "safetensors.numpy", "h5py", "torch")


class PythonBench(Bench):
    """Names begin with "Python" and share no word with the other races, so that --only has them apart."""

    def _program(self, contestant):
        return dataclasses.replace(contestant, name=PROGRAM, kind="floor")

    def _chosen(self, *kinds):
        return [kind for kind in kinds if kind in self._wanted]

    def written(self, what, durable):
        name = f"Python, written{' durably' if durable else ', not durable'}, {what}"
        program = self._program(self._our_save("", "full" if durable else "none"))
        kinds = (*COPIES, *self._chosen(peers.TorchSave, peers.Safetensors))
        contestants = [self._peer_save(kind, durable) for kind in kinds]
        aims = {PROGRAM: ("at least", AS_FAST)}
        return Race(name, SYNCED if durable else UNSYNCED, [*contestants, program], self.size, aims)

    def copied(self, what):
        """Into memory that is allocated on the way, verified."""
        return self._read(f"Python, read into memory, {what}", "copy", COPIES, peers.TorchSave, peers.Safetensors)

    def mapped(self, what):
        return self._read(f"Python, mapped, {what}", "views", MAPPINGS, peers.TorchMapped)

    def _read(self, name, way, ours, *others):
        program = self._program(self._our_load("", way, "on", False))
        contestants = [self._peer_load(kind, False) for kind in (*ours, *self._chosen(*others))]
        aims = {PROGRAM: ("at least", AS_FAST)}
        return Race(name, WARM + TOUCHED, [*contestants, program], self.size, aims)


def a_tensor(race, count):
    """The race with the time a tensor, opening included."""

    def each(contestant):
        limit = A_TENSOR if contestant.kind == "ours" else 0
        return dataclasses.replace(contestant, run=lambda: contestant.run() / count, limit=limit)

    name = f"{race.name}, time a tensor"
    return dataclasses.replace(race, name=name, contestants=[*map(each, race.contestants)], bytes=0, aims={})


def imports(folder, alone):
    """What an import costs once numpy is there, each in a Python of its own, from compiled files."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(folder / "compiled")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)

    def seconds(module):
        code = f"import time, numpy; start = time.perf_counter(); import {module}; print(time.perf_counter() - start)"
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise Unable(done.stderr.strip().splitlines()[-1])
        return float(done.stdout)

    def contestant(module):
        ours = module.startswith("thalia")
        run = lambda: statistics.median(seconds(module) for _ in range(5))  # noqa: E731
        return Contestant(module, run, kind="ours" if ours else "peer", limit=AN_IMPORT if ours else 0)

    chosen = [module for module in IMPORTED if not alone or module.startswith("thalia")]
    return Race("Python, import", "numpy imported before; bytecode written before", [*map(contestant, chosen)])
