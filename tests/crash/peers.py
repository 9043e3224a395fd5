#!/usr/bin/env python3
"""What a crash leaves of the savers that people use: a table for docs/contribute/durability.md.

    tests/crash/peers.py BUILD [--states N] [--saver NAME] [--check]

BUILD is the folder of a build with tests. --check fails unless the saver that syncs loses nothing and
each other one loses something. Runs in an interpreter that has PyTorch and safetensors.
Each saver puts a new checkpoint over an old one, and is done where its call returns. It is recorded
(recorder.h), and each state that the machine could wake up with (crash_states.cc) is loaded by the
saver's own loader. A state counts in the first column that fits:

    nothing      neither the old checkpoint nor the new one can be loaded
    damaged      something else is loaded without an error
    lost         the save had returned, and the old checkpoint is loaded
"""

import argparse
import collections
import ctypes
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

MODES = ("killed", "ordered", "writeback", "bare")


def state(step):
    import torch

    generator = torch.Generator().manual_seed(step)
    return {
        "w_in": torch.randn(60, 64, generator=generator),
        "w_rec": torch.randn(64, 64, generator=generator),
        "step": torch.tensor([step]),
    }


def step_of(found):
    """1 or 2 where it is that state, bit for bit, 0 where it is none."""
    import torch

    for step in (1, 2):
        wanted = state(step)
        if found.keys() == wanted.keys() and all(torch.equal(found[k], wanted[k]) for k in wanted):
            return step
    return 0


def save_torch(folder, step):
    import torch

    torch.save(state(step), folder / "model.pt")


def save_torch_replacing(folder, step):
    import torch

    torch.save(state(step), folder / "model.pt.new")
    os.replace(folder / "model.pt.new", folder / "model.pt")


def save_torch_synced(folder, step):
    import torch

    with open(folder / "model.pt.new", "wb") as file:
        torch.save(state(step), file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(folder / "model.pt.new", folder / "model.pt")
    fd = os.open(folder, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)


def load_torch(folder):
    import torch

    return torch.load(folder / "model.pt", weights_only=True)


def save_safetensors(folder, step):
    from safetensors.torch import save_file

    save_file(state(step), folder / "model.safetensors")


def load_safetensors(folder):
    from safetensors.torch import load_file

    return load_file(folder / "model.safetensors")


def save_dcp(folder, step):
    import torch.distributed.checkpoint as dcp

    dcp.save(state(step), storage_writer=dcp.FileSystemWriter(folder / "dcp"), no_dist=True)


def load_dcp(folder):
    import torch
    import torch.distributed.checkpoint as dcp

    found = {name: torch.full_like(tensor, -1) for name, tensor in state(1).items()}
    dcp.load(found, storage_reader=dcp.FileSystemReader(folder / "dcp"), no_dist=True)
    return found


SAVERS = {
    "torch.save over the old file": (save_torch, load_torch),
    "torch.save, os.replace": (save_torch_replacing, load_torch),
    "torch.save, fsync, os.replace, fsync of the folder": (save_torch_synced, load_torch),
    "safetensors save_file over the old file": (save_safetensors, load_safetensors),
    "torch.distributed.checkpoint over the old folder": (save_dcp, load_dcp),
}


def tell(what, name):
    getattr(ctypes.CDLL(None), f"thalia_crash_{what}")(name.encode())


def perform(saver, folder):
    tell("attempt", "2")
    SAVERS[saver][0](folder, 2)
    tell("promise", "2")


def write_inodes(folder, path):
    with open(path, "w", encoding="utf-8") as out:
        for found in (folder, *sorted(folder.rglob("*"))):
            out.write(f"{found.lstat().st_ino} {found.relative_to(folder)}\n")


def record(build, saver, place):
    folder = place / "recorded"
    folder.mkdir()
    SAVERS[saver][0](folder, 1)
    # In another process, so that nothing of the first save is there to be written.
    os.sync()
    shutil.copytree(folder, place / "before", symlinks=True)
    write_inodes(folder, place / "before.inodes")
    environment = {
        **os.environ,
        "LD_PRELOAD": str(build / "tests/crash/thalia_crash_recorder.so"),
        "THALIA_CRASH_FOLDER": str(folder),
        "THALIA_CRASH_LOG": str(place / "log"),
        "THALIA_CRASH_TRAP": "1",  # Rust asks the kernel past the C library
    }
    command = [sys.executable, __file__, str(build), "--perform", saver, str(folder)]
    subprocess.run(command, env=environment, check=True)


def judge(saver, folder, told):
    try:
        found = step_of(SAVERS[saver][1](folder))
    except KeyboardInterrupt:
        raise
    except BaseException:  # whatever a loader says: DCP's errors are no Exceptions
        return "nothing"
    if found == 0:
        return "damaged"
    return "lost" if found == 1 and "promise 2" in told.split("\t") else "kept"


def explore(build, saver, place, mode, states, scratch):
    counts = collections.Counter()
    command = [build / "tests/crash/crash_states", place / "log", place / "before"]
    command += [place / "recorded", scratch, mode, str(states), "1"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            counts[judge(saver, scratch, line.rstrip("\n"))] += 1
            process.stdin.write("next\n")
            process.stdin.flush()
        process.stdin.close()
    if process.returncode != 0:
        sys.exit(f"{saver}: crash_states ended with status {process.returncode}")
    return counts


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=Path)
    parser.add_argument("--states", type=int, default=300, help="of a saver and a mode")
    parser.add_argument("--saver", choices=SAVERS)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--perform", nargs=2, metavar=("SAVER", "FOLDER"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    build = options.build.resolve()
    if options.perform:
        perform(options.perform[0], Path(options.perform[1]))
        return
    # What the loaders say of each damaged file.
    warnings.filterwarnings("ignore")
    logging.disable()
    print("| saver | mode | states | nothing | damaged | lost |\n|---|---|---|---|---|---|")
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    for saver in [options.saver] if options.saver else SAVERS:
        with tempfile.TemporaryDirectory() as place, tempfile.TemporaryDirectory(dir=memory) as scratch:
            record(build, saver, Path(place))
            losses = 0
            for mode in MODES:
                state_folder = Path(scratch) / "state"
                counts = explore(build, saver, Path(place), mode, options.states, state_folder)
                columns = [saver, mode, sum(counts.values())]
                columns += [counts[name] for name in ("nothing", "damaged", "lost")]
                print(f"| {' | '.join(map(str, columns))} |", flush=True)
                losses += sum(columns[3:])
            if options.check and (losses == 0) != (SAVERS[saver][0] is save_torch_synced):
                sys.exit(f"{saver}: {losses} states are lost or damaged")


if __name__ == "__main__":
    main()
