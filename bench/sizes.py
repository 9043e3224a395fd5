#!/usr/bin/env python3
"""Sizes of one brain in files of this library and of torch.save: dense, sparse and in fp16.

Half of its matrices are dense, half 95 % zeros; weights are normal, sigma 0.02. torch is installed
into .venv-bench on the first run.
"""

import argparse
import os
import pathlib
import subprocess
import tempfile

from race import environment


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    add = parser.add_argument
    add("--build", type=pathlib.Path, default=environment.ROOT / "build-bench", help="build folder")
    default = pathlib.Path(os.environ.get("THALIA_BENCH_DIR", "/var/tmp"))
    add("--dir", type=pathlib.Path, default=default, help="folder on a disk")
    add("--neurons", type=int, default=50_000, help="of each of the two regions (50000)")
    add("--without-peers", action="store_true", help="only Thalia's files; installs nothing")
    return parser.parse_args()


def peer_files(folder):
    """What torch.save makes of the tensors of dense.safetensors."""
    import torch
    from safetensors.torch import load_file

    state = load_file(folder / "dense.safetensors")
    weights = [name for name in state if "w_" in name]
    pruned = [name for name in weights if "pruned" in name]
    sparse = state | {name: state[name].to_sparse_csr() for name in pruned}
    half = {name: value.half() if name in weights else value for name, value in state.items()}
    sparse_half = half | {name: half[name].to_sparse_csr() for name in pruned}
    states = {
        "dense.pt": state,
        "dense.fp16.pt": half,
        "sparse.pt": sparse,
        "sparse.fp16.pt": sparse_half,
    }
    for name, value in states.items():
        torch.save(value, folder / name)


def report(folder):
    """A line a file: bytes, and the share of what torch.save makes of the dense state."""
    sizes = {path.name: path.stat().st_size for path in folder.iterdir() if path.is_file()}
    whole = sizes.get("dense.pt") or sizes["dense.safetensors"]
    print("| file | bytes | of the dense torch.save |\n|---|---|---|")
    for name, size in sorted(sizes.items(), key=lambda item: -item[1]):
        print(f"| {name} | {size:,} | {size / whole:.3f} |")


def main():
    options = parse()
    if not options.without_peers:
        environment.enter()
    with tempfile.TemporaryDirectory(prefix="thalia-sizes-", dir=options.dir) as name:
        folder = pathlib.Path(name)
        program = options.build / "bench/brain_files"
        subprocess.run([program, folder, str(options.neurons)], check=True)
        if not options.without_peers:
            peer_files(folder)
        report(folder)


if __name__ == "__main__":
    main()
