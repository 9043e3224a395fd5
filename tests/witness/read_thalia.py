#!/usr/bin/env python3
"""Reads a .thalia 1.0 file and checks all of it, independently of the library.

Written from docs/format/format.md alone, to bear witness that the document suffices. Needs the standard
library only; the packages xxhash, zstandard and lz4 for XXH3 digests and compressed chunks. What a
missing package leaves unchecked is said.

Exit status: 0 the file is sound; 1 it is refused; 2 wrong usage.
"""

import argparse
import json
import mmap
import sys
import uuid

import digests
import structures as s

from checkpoint import Checkpoint


def describe(file):
    """Everything but the elements, as JSON can hold it."""
    header = file.header
    return {
        "version": f"{header.major_version}.{header.minor_version}.{header.patch_version}",
        "generation": header.generation,
        "flags": header.flags,
        "timestamp": header.timestamp,
        "file_uuid": str(uuid.UUID(bytes=header.file_uuid)),
        "file_length": header.file_length,
        "training_steps": header.training_steps,
        "total_neurons": header.total_neurons,
        "total_synapses": header.total_synapses,
        "checksum_type": s.CHECKSUM_TYPES[header.checksum_type],
        "leaf_algorithm": file.leaf_algorithm,
        "block_log2": header.integrity_block_log2,
        "closing_checksum": bytes(file.data[header.file_length - 32 : header.file_length]).hex(),
        "metadata": file.metadata,
        "regions": [
            {
                "name": region.name,
                "n_neurons": region.header.n_neurons,
                "n_inputs": region.header.n_inputs,
                "neuron_type": s.NEURON_TYPES[region.header.neuron_type],
                "config": region.config,
                "metadata": region.metadata,
                "homeostatic_updated": region.homeostatic_updated,
            }
            for region in file.regions
        ],
        "tensors": [describe_tensor(tensor) for tensor in file.tensors],
        "connections": [{"source": source, "target": target} for source, target in file.connections],
        "unchecked": sorted(digests.unchecked.values()),
    }


def describe_tensor(tensor):
    return {
        "region": tensor.region.name if tensor.region else None,
        "name": tensor.name,
        "role": s.ROLES[tensor.entry.role],
        "encoding": tensor.encoding,
        "dtype": tensor.dtype,
        "shape": list(tensor.shape),
        "nnz": tensor.entry.nnz,
        "wide_indices": tensor.entry.flags & 1 == 1,
        "logical_length": tensor.entry.logical_length,
        "chunks": [s.CODECS[chunk.codec] for chunk in tensor.chunks],
        "sha256": tensor.sha256(),
    }


def print_summary(facts):
    print(
        f"version {facts['version']}, generation {facts['generation']}, "
        f"{facts['file_length']} bytes, {len(facts['regions'])} regions, "
        f"{len(facts['tensors'])} tensors, {len(facts['connections'])} connections"
    )
    leaves = f" of {facts['leaf_algorithm']} leaves" if facts["leaf_algorithm"] else ""
    print(f"{facts['checksum_type']}{leaves}: {facts['closing_checksum']}")
    for tensor in facts["tensors"]:
        place = f"{tensor['region']}/{tensor['name']}" if tensor["region"] else tensor["name"]
        codecs = ",".join(sorted(set(tensor["chunks"]))) or "raw"
        print(
            f"  {place!r}: {tensor['role']} {tensor['encoding']} {tensor['dtype']} "
            f"{tensor['shape']} {tensor['logical_length']} bytes, {codecs}"
        )


def find_tensor(file, wanted, parser):
    """By "region/tensor", or by the tensor's own name where it is the only one."""
    exact = [t for t in file.tensors if t.label == wanted]
    found = exact or [t for t in file.tensors if t.name == wanted]
    if len(found) != 1:
        parser.error(f"{len(found)} tensors are called {wanted!r}")
    return found[0]


def main():
    parser = argparse.ArgumentParser(description="Reads a .thalia 1.0 file and checks all of it.")
    parser.add_argument("file")
    parser.add_argument("--json", action="store_true", help="print everything but the elements")
    parser.add_argument("--tensor", metavar="NAME", help="print one tensor's elements")
    arguments = parser.parse_args()
    try:
        with open(arguments.file, "rb") as opened:
            empty = opened.seek(0, 2) == 0
            data = b"" if empty else mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
            file = Checkpoint(memoryview(data))
    except (OSError, s.Refused) as error:
        sys.exit(f"{arguments.file}: {error}")
    facts = describe(file)
    if arguments.tensor is not None:
        tensor = find_tensor(file, arguments.tensor, parser)
        if tensor.data is None:
            sys.exit("; ".join(facts["unchecked"]))
        try:
            facts = describe_tensor(tensor) | tensor.contents()
        except ValueError as error:
            sys.exit(f"{arguments.file}: {tensor.label!r}: {error}")
        print(json.dumps(facts))
    elif arguments.json:
        print(json.dumps(facts))
    else:
        print_summary(facts)
    for line in sorted(digests.unchecked.values()):
        print(line, file=sys.stderr)


if __name__ == "__main__":
    main()
