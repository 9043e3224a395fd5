"""What the witness finds in a file, in the words of the manifest."""

import hashlib
import math

import digests
import elements
import structures as s
from around import SideFile, unwrap, unwrapped
from chain import APPLY, Chain, Link
from packed import is_packed

from checkpoint import Checkpoint

# Encodings whose stored bytes can be looked at without a base.
ALONE = {name: APPLY[name] for name in ("sparse_delta", "low_rank_delta")}


# The values of longer tensors, and of types that every language has, say nothing more.
MOST_VALUES = 256


def plain(number):
    """As JSON has it."""
    if isinstance(number, float) and math.isnan(number):
        return "NaN"
    if isinstance(number, float) and math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    return number


def describe_tensor(tensor, resolved):
    entry = tensor.entry
    facts = {
        "region": tensor.region.name if tensor.region else None,
        "name": tensor.name,
        "role": s.ROLES[entry.role],
        "encoding": tensor.encoding,
        "dtype": tensor.dtype,
        "shape": list(tensor.shape),
        "nnz": entry.nnz,
        "wide_indices": entry.flags & 1 == 1,
        "logical_length": entry.logical_length,
        "crc32": entry.crc32,
        "content_hash": entry.content_hash.hex(),
        "sha256": tensor.sha256(),
        "chunks": [[s.CODECS[c.codec], s.FILTERS[c.filter]] for c in tensor.chunks],
    }
    if tensor.encoding == "dense" and tensor.bits <= 16 and tensor.count <= MOST_VALUES:
        numbers = elements.values(tensor.dtype, bytes(tensor.data), tensor.count)
        facts["values"] = [plain(number) for number in numbers]
    if resolved is not None:
        facts["result"] = {
            "encoding": s.ENCODINGS[tensor.side.encoding] if tensor.side else "dense",
            "bytes": len(resolved),
            "crc32": digests.crc32(resolved),
            "content_hash": digests.content_hash(resolved).hex(),
            "sha256": hashlib.sha256(resolved).hexdigest(),
        }
    return facts


def describe(file, resolved):
    """What a reader finds. resolved: {label: bytes} of tensors that come out of codes or a base."""
    header = file.header
    return {
        "generation": header.generation,
        "flags": header.flags,
        "training_steps": header.training_steps,
        "total_neurons": header.total_neurons,
        "total_synapses": header.total_synapses,
        "checksum_type": s.CHECKSUM_TYPES[header.checksum_type],
        "closing_checksum": bytes(file.data[header.file_length - 32 : header.file_length]).hex(),
        "metadata": file.metadata,
        "regions": [
            {
                "name": r.name,
                "n_neurons": r.header.n_neurons,
                "n_inputs": r.header.n_inputs,
                "neuron_type": s.NEURON_TYPES[r.header.neuron_type],
                "config": r.config,
                "metadata": r.metadata,
            }
            for r in file.regions
        ],
        "connections": [list(pair) for pair in file.connections],
        "tensors": [describe_tensor(t, resolved.get(t.label)) for t in file.tensors],
    }


def file_of(folder, content):
    """The name of the file that holds what was wrapped."""
    same = (p.name for p in sorted(folder.iterdir()) if p.stat().st_size == len(content) and p.read_bytes() == content)
    return next(same, None)


def describe_valid(folder, path):
    name = path.relative_to(folder).as_posix()
    facts = {"file": name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
    if is_packed(path.read_bytes()):
        return facts | {"kind": "wrapper", "of": file_of(folder, unwrapped(path.read_bytes()))}
    if ".delta.thalia" in name and name.endswith(".thalia"):
        chain = Chain(path)
        link = chain.links[0]
        facts |= {"kind": "delta", "base": link.base_path, "depth": link.depth}
        resolved = {t.label: chain.resolve(link.key_of(t), 0)[0] for t in link.file.tensors}
        return facts | describe(link.file, resolved)
    if name.endswith((".zst", ".lz4")):
        return facts | {"kind": "wrapper", "of": file_of(folder, unwrap(path.read_bytes()))}
    if name.endswith(".meta"):
        return facts | {"kind": "side_file", "of": name.removesuffix(".meta")}
    file = Checkpoint(memoryview(path.read_bytes()))
    resolved = {t.label: bytes(t.restored) for t in file.tensors if t.quantized}
    return facts | {"kind": "full"} | describe(file, resolved)


def refusal(path, with_base=False):
    """What the witness says of a file; None where it takes it."""
    data = path.read_bytes()
    try:
        if with_base:
            list(Chain(path).tensors())
        elif data[:4] == b"TMET":
            SideFile(data)
        elif unwrapped(data)[:4] == b"\xce\x94TH":
            check_delta(path)
        else:
            Checkpoint(memoryview(unwrapped(data)))
    except s.Refused as refused:
        return refused
    return None


def check_delta(path):
    """Without its base: what comes out cannot be looked at, but what is stored can."""
    for tensor in Link(path).file.tensors:
        if tensor.encoding in ALONE:
            ALONE[tensor.encoding](tensor, bytes(tensor.count * tensor.bits // 8))
