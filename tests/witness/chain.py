"""A delta and the files below it, resolved as docs/format/deltas.md, "Delta files", says."""

import math
import pathlib
import struct
from itertools import pairwise

import digests
import elements
import structures as s
from around import unwrapped
from low_rank import apply_low_rank
from quantized import TYPES, rounded
from step_delta import apply_step
from structures import Refused, align

from checkpoint import Checkpoint


class Link:
    """One file of a chain, checked: its container, and of a delta what names the base."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        data = memoryview(unwrapped(self.path.read_bytes()))
        self.header = self.reference = self.base_path = None
        if bytes(data[:4]) == b"\xce\x94TH":
            data = self.read_prefix(data)
        self.file = Checkpoint(data)
        container = self.file.header
        if self.header:
            self.header.require(
                "base_checkpoint_hash",
                self.header.base_checkpoint_hash == container.base_checksum,
                container.base_checksum.hex(" "),
            )
            self.header.require("base_step", self.header.base_step == container.base_step, container.base_step)
            container.require("generation", container.generation == 1, "1: of deltas")
            step = container.training_steps
            self.header.require("current_step", self.header.current_step == step, step)
        container.require("flags", bool(container.flags & 1 << 6) == bool(self.header), "bit 6: of deltas")
        end = container.file_length
        self.closing = bytes(data[end - 32 : end])

    def read_prefix(self, data):
        """The bytes of the container."""
        self.header = s.DELTA_HEADER.read(data, 0)
        known = self.header.magic[4:] == b"L" and self.header.delta_version == 2
        self.header.require("delta_version", known, 2, "UnsupportedError")
        self.header.require_zero()
        reference = s.DELTA_REFERENCE.read(data, 64)
        reference.require("reference_length", reference.reference_length == 64, 64)
        length = reference.path_length
        reference.require("path_length", 1 <= length <= 65535, "1 to 65535")
        start = align(128 + length, 4096)
        reference.require("container_offset", reference.container_offset == start, start)
        reference.require("container_offset", start < len(data), f"within {len(data)}")
        reference.require("depth", reference.depth >= 1, "1 or more")
        reference.require("base_generation", reference.base_generation >= 1, "1 or more")
        reference.require_zero()
        crc = digests.crc32_without(data[:start], 64 + s.DELTA_REFERENCE.offsets["crc32"])
        reference.require("crc32", reference.crc32 == crc, crc, "IntegrityError")
        if any(data[128 + length : start]):
            raise Refused("FormatError", "delta", "padding", 128 + length, "non-zero bytes", "zero")
        self.reference = reference
        name = bytes(data[128 : 128 + length])
        if b"\0" in name:
            raise Refused("FormatError", "delta", "path", 128, name, "bytes without NUL")
        self.base_path = name.decode("utf-8")
        return data[start:]

    @property
    def depth(self):
        return self.reference.depth if self.reference else 0

    def find(self, key):
        return next((t for t in self.file.tensors if self.key_of(t) == key), None)

    def key_of(self, tensor):
        """What the tensor is known by in every file of the chain."""
        if tensor.region:
            return tensor.region.name, tensor.name
        number, what = tensor.name.split(".")
        return self.file.connections[int(number)], what


class Chain:
    """Links from the top down to the full file."""

    def __init__(self, path):
        self.links = [Link(path)]
        while self.links[-1].reference:
            top = self.links[-1]
            base = Link(self.place_of_base(top))
            header, reference = top.header, top.reference
            header.require(
                "base_checkpoint_hash",
                header.base_checkpoint_hash == base.closing,
                base.closing.hex(" "),
                "IntegrityError",
            )
            own = base.file.header
            reference.require("base_uuid", reference.base_uuid == own.file_uuid, own.file_uuid, "IntegrityError")
            reference.require(
                "base_generation",
                reference.base_generation == own.generation,
                own.generation,
                "IntegrityError",
            )
            reference.require("depth", reference.depth == base.depth + 1, base.depth + 1)
            self.links.append(base)

    def place_of_base(self, top):
        """Where the path leads from the delta's folder; else its last part in that folder."""
        folder, path = top.path.parent, pathlib.PurePosixPath(top.base_path)
        places = [folder / path, folder / path.name]
        for place in places:
            if place.is_file() and not any(place.samefile(link.path) for link in self.links):
                return place
        raise Refused("FormatError", "file", "base", 0, top.base_path, "a file")

    def tensors(self):
        """(key, logical bytes) of the state."""
        for tensor in self.links[0].file.tensors:
            key = self.links[0].key_of(tensor)
            yield key, self.resolve(key, 0)[0]

    def resolve(self, key, at):
        """(logical bytes, (type, shape), content hash) of a tensor as link `at` has it."""
        tensor = self.links[at].find(key)
        if tensor is None:
            raise Refused("FormatError", "directory", "tensor", 0, key, "one that the base has")
        if tensor.quantized:
            return bytes(tensor.restored), (tensor.dtype, tensor.shape), tensor.quantized.side.content_hash
        if tensor.side is None:
            return bytes(tensor.data), (tensor.dtype, tensor.shape), tensor.entry.content_hash
        base, (dtype, shape), content_hash = self.resolve(key, at + 1)
        side = tensor.side
        brief = side.flags & 2
        if not brief:
            same = side.base_content_hash == content_hash
            side.require("base_content_hash", same, content_hash.hex(" "), "IntegrityError")
        elif tensor.encoding == "same_as_base":
            side.require("content_hash", side.content_hash == content_hash, content_hash.hex(" "), "IntegrityError")
        if tensor.encoding in ("same_as_base", "step_delta") and (dtype, shape) != (tensor.dtype, tensor.shape):
            raise Refused("FormatError", "directory", "shape", 0, (dtype, shape), (tensor.dtype, tensor.shape))
        if side.encoding == 0 and dtype != tensor.dtype:
            base = converted(base, dtype, tensor.dtype)
        if side.encoding == 0 and shape != tensor.shape:
            base = fitted(base, shape, tensor.shape, tensor.bits // 8)
        made = APPLY[tensor.encoding](tensor, base)
        side.require("logical_length", side.logical_length == len(made), len(made))
        crc = digests.crc32(made)
        side.require("crc32", brief or side.crc32 == crc, crc, "IntegrityError")
        digest = digests.content_hash(made)
        if digest is not None:
            side.require("content_hash", side.content_hash == digest, digest.hex(" "), "IntegrityError")
        return made, (tensor.dtype, tensor.shape), side.content_hash


def converted(base, source, target):
    """Floating point elements, each rounded once to another type."""
    for dtype in (source, target):
        if dtype not in TYPES:
            raise Refused("FormatError", "directory", "dtype", 0, source, target)
    bits = {dtype: elements.bits_of(dtype) for dtype in (source, target)}
    mantissa = {dtype: TYPES[dtype][2] for dtype in (source, target)}
    exponent = (1 << bits[target] - 1 - mantissa[target]) - 1 << mantissa[target]
    width = bits[source] // 8
    out = []
    for i, number in enumerate(elements.values(source, base, len(base) // width)):
        code = int.from_bytes(base[i * width : (i + 1) * width], "little")
        top = (code >> bits[source] - 1 << bits[target] - 1) | exponent
        if math.isnan(number):
            shift = mantissa[target] - mantissa[source]
            payload = code & (1 << mantissa[source]) - 1
            payload = payload << shift if shift >= 0 else payload >> -shift
            made = top | payload | 1 << mantissa[target] - 1
        elif math.isinf(number) or too_large(number, target):
            made = top
        else:
            out.append(rounded(target, number))
            continue
        out.append(made.to_bytes(bits[target] // 8, "little"))
    return b"".join(out)


def too_large(number, dtype):
    """Whether it is nearer to the power of two behind the largest number than to that."""
    largest = TYPES[dtype][3]
    unit = math.ldexp(1.0, math.frexp(largest)[1] - 1 - TYPES[dtype][2])
    return dtype != "f64" and abs(number) >= largest + unit / 2


def fitted(base, base_shape, shape, width):
    """Elements at their indices in another shape; zero bits where the base has none."""
    if len(shape) != len(base_shape):
        raise Refused("FormatError", "directory", "shape", 0, base_shape, shape)
    if len(shape) == 1:
        kept = base[: shape[0] * width]
        return kept + bytes(shape[0] * width - len(kept))
    step = len(base) // base_shape[0] if base_shape[0] else 0
    size = math.prod(shape[1:]) * width
    rows = []
    for i in range(shape[0]):
        if i < base_shape[0]:
            row = base[i * step : (i + 1) * step]
            rows.append(fitted(row, base_shape[1:], shape[1:], width))
        else:
            rows.append(bytes(size))
    return b"".join(rows)


def apply_same(tensor, base):
    return base


def apply_difference(tensor, base):
    size = len(base)
    number = int.from_bytes(base, "little") ^ int.from_bytes(bytes(tensor.data), "little")
    return number.to_bytes(size, "little")


def apply_list(tensor, base):
    out = bytearray(base)
    width = tensor.bits // 8
    data = bytes(tensor.data)
    pointers = struct.unpack_from(f"<{tensor.blocks + 1}Q", data)
    nnz = tensor.entry.nnz
    if pointers[0] != 0 or pointers[-1] != nnz or any(a > b for a, b in pairwise(pointers)):
        tensor.refuse("block_pointers", "another sequence", f"ascending from 0 to {nnz}")
    positions = struct.unpack_from(f"<{nnz}H", data, (tensor.blocks + 1) * 8)
    for block, (begin, end) in enumerate(pairwise(pointers)):
        most = min(65536, tensor.count - block * 65536)
        run = positions[begin:end]
        if any(a >= b for a, b in pairwise(run)) or (run and run[-1] >= most):
            tensor.refuse("positions", f"block {block}", f"ascending, below {most}")
        for i, position in enumerate(run, begin):
            at = (block * 65536 + position) * width
            value = tensor.values_at + i * width
            out[at : at + width] = data[value : value + width]
    return bytes(out)


APPLY = {
    "same_as_base": apply_same,
    "xor_base": apply_difference,
    "sparse_delta": apply_list,
    "low_rank_delta": apply_low_rank,
    "step_delta": apply_step,
}
