"""What Thalia is for, in one run with the Python package alone: tools/demo does this where a wheel is at hand.

    python3 tour.py FOLDER [--neurons N]
    python3 tour.py FOLDER --model FILE.safetensors

A spiking network runs, saves its whole state, and runs on. Another process, which has only the file, takes it on from
there and comes to the same spikes. A flipped bit in a copy is found.
"""

from __future__ import annotations

import argparse
import filecmp
import hashlib
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import thalia_checkpoint as thalia

FAN_OUT = 20


class Network:
    """Leaky neurons that fire at each other; all that it is made of is saved."""

    def __init__(self, neurons: int) -> None:
        self.random = np.random.default_rng(1)
        self.step = 0
        self.membrane = np.zeros(neurons, np.float32)
        self.targets = self.random.integers(neurons, size=(neurons, FAN_OUT), dtype=np.uint32)
        self.weights = self.random.normal(0, 0.1, size=(neurons, FAN_OUT)).astype(np.float32)

    def run(self, steps: int) -> str:
        """A digest of all spikes."""
        digest = hashlib.sha256()
        for _ in range(steps):
            self.membrane *= np.float32(0.9)
            self.membrane += self.random.random(self.membrane.size, dtype=np.float32) * np.float32(0.3)
            spikes = np.flatnonzero(self.membrane > 1)
            self.membrane[spikes] = 0
            received = np.bincount(
                self.targets[spikes].ravel(), self.weights[spikes].ravel(), minlength=self.membrane.size
            )
            self.membrane += received.astype(np.float32)
            digest.update(spikes.tobytes())
            self.step += 1
        return digest.hexdigest()[:16]

    def save(self, path: Path) -> int:
        with thalia.Writer(path) as writer:
            writer.add("cells/membrane", self.membrane)
            writer.add("synapses/targets", self.targets)
            writer.add("synapses/weights", self.weights)
            writer.metadata = {"random": self.random.bit_generator.state, "step": self.step}
        assert writer.result is not None
        return writer.result.file_bytes

    @classmethod
    def load(cls, path: Path) -> Network:
        network = cls.__new__(cls)
        with thalia.open(path) as file:
            network.membrane = file["cells/membrane"].numpy(writable=True)
            network.targets = file["synapses/targets"].numpy()
            network.weights = file["synapses/weights"].numpy()
            metadata: dict[str, Any] = dict(file.metadata)
        network.random = np.random.default_rng()
        network.random.bit_generator.state = metadata["random"]
        network.step = metadata["step"]
        return network


def timed(what: str, since: float) -> None:
    print(f"  {what}: {1000 * (time.perf_counter() - since):.1f} ms")


def resume(path: Path, steps: int) -> str:
    """What the second process does."""
    since = time.perf_counter()
    with thalia.open(path) as file:
        membrane: npt.NDArray[np.float32] = file["cells/membrane"].numpy()
        mean = float(membrane.mean())
    timed(f"open, and load one region: {membrane.size:,} membranes, {mean:.4f} on average", since)
    since = time.perf_counter()
    report = thalia.verify(path)
    timed(f"verify the whole file: {report.bytes_checked:,} bytes, {len(report.findings)} findings", since)
    if not report.ok:
        raise SystemExit(f"{path}: {report.findings[0].message}")
    since = time.perf_counter()
    network = Network.load(path)
    timed(f"load all of it, of step {network.step}", since)
    return network.run(steps)


def damage(path: Path) -> None:
    """A flipped bit in the last tensor of a copy."""
    copy = path.with_name(f"damaged{path.suffix}")
    shutil.copyfile(path, copy)
    with copy.open("r+b") as file:
        file.seek(copy.stat().st_size // 2)
        byte = file.read(1)[0]
        file.seek(-1, 1)
        file.write(bytes([byte ^ 1]))
    report = thalia.verify(copy)
    copy.unlink()
    if report.ok:
        raise SystemExit("the flipped bit was not found")
    found = report.findings[0]
    place = f" in {found.region}/{found.tensor}" if found.tensor else ""
    print(f"  verify: {found.code}{place}: {found.message}")


def tour(folder: Path, neurons: int) -> None:
    path, more = folder / "network.thalia", 100
    print(f"1  One process builds a network of {neurons:,} neurons, runs it, saves it, and lets it run on.")
    network = Network(neurons)
    network.run(200)
    since = time.perf_counter()
    size = network.save(path)
    timed(f"save of {size:,} bytes, synced to the disk", since)
    expected = network.run(more)
    print(f"  spikes of the next {more} steps: {expected}")

    print("\n2  Another process, which has only the file, loads a region, verifies it, and takes the network on.")
    command = [sys.executable, __file__, str(folder), "--resume", str(more)]
    ended = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    *said, spikes = ended.stdout.splitlines()
    print(*said, f"  spikes of the next {more} steps: {spikes}", sep="\n")
    if spikes != expected:
        raise SystemExit("the network that was resumed fires differently")
    print("  The same spikes.")

    print("\n3  A copy of the file with a single flipped bit.")
    damage(path)


def model_tour(folder: Path, model: Path) -> None:
    path, back = folder / "model.thalia", folder / "back.safetensors"
    print(f"1  {model} becomes a .thalia file.")
    since = time.perf_counter()
    thalia.convert(model, path, replace=True)
    timed("converted, synced to the disk", since)

    print("\n2  The file is opened, one tensor loaded, and all of it verified.")
    since = time.perf_counter()
    with thalia.open(path) as file:
        name = next(iter(file.tensors))
        tensor = file.tensors[name]
        timed(f"open, and load {name}: {tensor.dtype} of {json.dumps(list(tensor.shape))}", since)
    since = time.perf_counter()
    report = thalia.verify(path)
    timed(f"verify: {report.bytes_checked:,} bytes, {len(report.findings)} findings", since)

    print("\n3  Back to safetensors, and compared.")
    thalia.convert(path, back, replace=True)
    if thalia.diff(model, back):
        raise SystemExit("the model came back different")
    same = filecmp.cmp(model, back, shallow=False)
    print(f"  Every {'byte' if same else 'tensor'} is the same.")

    print("\n4  A copy of the file with a single flipped bit.")
    damage(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--neurons", type=int, default=100_000)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--resume", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    if options.resume is not None:
        print(resume(options.folder / "network.thalia", options.resume))
    elif options.model is not None:
        model_tour(options.folder, options.model)
    else:
        tour(options.folder, options.neurons)


if __name__ == "__main__":
    main()
