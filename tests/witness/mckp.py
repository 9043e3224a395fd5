"""MCKP files in plain Python, written from docs/format/mckp.md alone."""

import hashlib
import json
import struct
from itertools import pairwise
from types import SimpleNamespace

import digests
import step_delta
from low_rank import apply_low_rank

MASK = (1 << 64) - 1
P1, P2, P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
P4, P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
PIECE = 4 << 20
STORE, ZSTD = 0, 1
DELTA, GROUPED, QUANTIZED, SPARSE, LOW_RANK, STEPS = (1 << bit for bit in range(8, 14))
# Code of the content hash, bytes of an element, whether bytes are grouped.
DTYPES = {
    "F32": (0, 4, True),
    "F16": (1, 2, True),
    "I8": (2, 1, False),
    "F64": (3, 8, True),
    "BF16": (4, 2, True),
    "I64": (7, 8, False),
    "U8": (8, 1, False),
    "BOOL": (12, 1, False),
}


class RefusedError(Exception):
    """The file breaks docs/format/mckp.md."""


def require(condition, what):
    if not condition:
        raise RefusedError(what)


def _rotate(word, by):
    return ((word << by) | (word >> (64 - by))) & MASK


def _round(lane, word):
    return _rotate((lane + word * P2) & MASK, 31) * P1 & MASK


def xxh64(data):
    """XXH64 with seed 0."""
    at, length = 0, len(data)
    if length >= 32:
        lanes = [(P1 + P2) & MASK, P2, 0, -P1 & MASK]
        while at + 32 <= length:
            words = struct.unpack_from("<4Q", data, at)
            lanes = [_round(lane, word) for lane, word in zip(lanes, words, strict=True)]
            at += 32
        turned = zip(lanes, (1, 7, 12, 18), strict=True)
        total = sum(_rotate(lane, by) for lane, by in turned) & MASK
        for lane in lanes:
            total = ((total ^ _round(0, lane)) * P1 + P4) & MASK
    else:
        total = P5
    total = (total + length) & MASK
    while at + 8 <= length:
        total ^= _round(0, struct.unpack_from("<Q", data, at)[0])
        total = (_rotate(total, 27) * P1 + P4) & MASK
        at += 8
    if at + 4 <= length:
        total ^= struct.unpack_from("<I", data, at)[0] * P1 & MASK
        total = (_rotate(total, 23) * P2 + P3) & MASK
        at += 4
    for byte in data[at:]:
        total = _rotate(total ^ byte * P5 & MASK, 11) * P1 & MASK
    total = (total ^ total >> 33) * P2 & MASK
    total = (total ^ total >> 29) * P3 & MASK
    return total ^ total >> 32


def product(shape):
    count = 1
    for extent in shape:
        count *= extent
    return count


class File:
    """Prelude, header, blocks and footer, checked against each other."""

    def __init__(self, data, decode_frames):
        """decode_frames(stored) gives what one frame or several decode to."""
        self.data = data
        self.decode_frames = decode_frames
        require(len(data) >= 32, "too short")
        magic, version, self.flags, length = struct.unpack_from("<4s3I", data)
        require(magic == b"MCKP", "magic")
        require(version == 1, "version")
        end = len(data) - 16
        checksum, total = struct.unpack_from("<2Q", data, end)
        require(checksum == xxh64(data[:end]), "checksum")
        self.blocks_at = 16 + length
        require(self.blocks_at <= end, "header_length")
        self.header = json.loads(decode_frames(data[16 : self.blocks_at]))
        self.tensors = {entry["name"]: entry for entry in self.header["tensor_metadata"]}
        require(len(self.tensors) == len(self.header["tensor_metadata"]), "names")
        self.check_blocks(end, total)

    def check_blocks(self, end, total):
        entries = list(self.tensors.values())
        ends = [self.blocks_at + entry["offset"] for entry in entries] + [end]
        require(ends[0] == self.blocks_at, "the first block")
        flags = 0
        for entry, (begin, stop) in zip(entries, pairwise(ends), strict=True):
            name = entry["name"].encode()
            header = struct.pack("<I", len(name)) + name
            header += struct.pack("<2QI", entry["compressed_size"], entry["original_size"],
                                  entry["method"])  # fmt: skip
            require(self.data[begin : begin + len(header)] == header, "block header")
            require(begin + len(header) + entry["compressed_size"] == stop, "offset")
            entry["payload"] = self.data[begin + len(header) : stop]
            require(xxh64(entry["payload"]) == int(entry["xxh64"], 16), "xxh64")
            for bit in range(6):
                flags |= (entry["method"] >> (8 + bit) & 1) << bit
        require(flags == self.flags, "flags")
        require(sum(entry["compressed_size"] for entry in entries) == total, "total")
        require(sum(entry["original_size"] for entry in entries) == self.header["original_size"],
                "original_size")  # fmt: skip

    def read(self, name, base=None):
        """The bytes of a tensor; of a delta, from those of its base."""
        entry = self.tensors[name]
        method = entry["method"]
        _, width, groups = DTYPES[entry["dtype"]]
        require((entry.get("sparse") is not None) == bool(method & SPARSE), "sparse")
        length = values = product(entry["shape"]) * width
        if method & SPARSE:
            values, length = sparse_lengths(entry, width)
        require(entry["original_size"] == length, "shape")
        if method & LOW_RANK:
            require(method == DELTA | LOW_RANK and groups and len(entry["shape"]) == 2, "low rank")
            require(struct.unpack_from("<I", entry["payload"])[0] != 0, "rank")
            matrix = SimpleNamespace(shape=entry["shape"], dtype=entry["dtype"].lower(), data=entry["payload"])
            return apply_low_rank(matrix, base)
        if method & STEPS:
            require(method == DELTA | STEPS, "steps")
            dtype = entry["dtype"].lower()
            require(dtype in step_delta.TYPES, "steps")
            return step_delta.StepDelta(dtype, product(entry["shape"]), entry["payload"]).apply(base)
        coded = self.decode_codec(method & 0xFF, entry["payload"])
        if method & QUANTIZED:
            return restore(entry, coded)
        require(len(coded) == entry["original_size"], "length of the payload")
        if method & GROUPED:
            require(groups and method >> 16 == width, "plane width")
            before = values if method & SPARSE else 0
            grouped = coded[before:]
            count = len(grouped) // width
            planes = [grouped[i * count : (i + 1) * count] for i in range(width)]
            elements = bytes(byte for element in zip(*planes, strict=True) for byte in element)
            coded = coded[:before] + elements
        if method & DELTA:
            coded = bytes(a ^ b for a, b in zip(coded, base, strict=True))
        if method & SPARSE:
            check_indices(entry, coded, values)
        return coded

    def decode_codec(self, codec, payload):
        require(codec in (STORE, ZSTD), "a codec that this reader has")
        return payload if codec == STORE else self.decode_frames(payload)

    def content_hash(self, restored):
        """Of {name: bytes}. None where its digests cannot be computed."""
        total = hashlib.sha256()
        known = {"sha256": lambda data: hashlib.sha256(data).digest(), "xxh3_128": digests.content_hash}
        digest = known[self.header.get("content_digests") or "sha256"]
        for name in sorted(restored, key=str.encode):
            entry = self.tensors[name]
            encoded, shape = name.encode(), entry["shape"]
            total.update(struct.pack("<I", len(encoded)) + encoded)
            code, sparse = DTYPES[entry["dtype"]][0], entry.get("sparse")
            if sparse:
                code += 256 if sparse["encoding"] == "csr" else 512
            total.update(struct.pack("<2I", code, len(shape)))
            total.update(struct.pack(f"<{len(shape)}Q", *shape))
            if sparse:
                total.update(struct.pack("<QI", sparse["nnz"], sparse["index_bits"]))
            total.update(struct.pack("<Q", len(restored[name])))
            of_bytes = digest(restored[name])
            if of_bytes is None:
                return None
            total.update(of_bytes)
        return total.hexdigest()


def index_count(entry):
    sparse, shape = entry["sparse"], entry["shape"]
    require(sparse["encoding"] in ("csr", "coo") and sparse["index_bits"] in (32, 64), "sparse")
    if sparse["encoding"] == "csr":
        require(len(shape) == 2, "csr of two dimensions")
        return shape[0] + 1 + sparse["nnz"]
    require(len(shape) >= 1, "coo of a dimension")
    return len(shape) * sparse["nnz"]


def sparse_lengths(entry, width):
    """Where the values of a sparse tensor begin, and where they end."""
    end = index_count(entry) * entry["sparse"]["index_bits"] // 8
    begin = -(-end // width) * width
    return begin, begin + entry["sparse"]["nnz"] * width


def check_indices(entry, data, values):
    """The rules of docs/format/format.md for csr and coo."""
    sparse, shape, count = entry["sparse"], entry["shape"], index_count(entry)
    nnz, width = sparse["nnz"], sparse["index_bits"] // 8
    require(not any(data[count * width : values]), "padding")
    indices = struct.unpack_from(f"<{count}{'I' if width == 4 else 'Q'}", data)
    if sparse["encoding"] == "csr":
        pointers, columns = indices[: shape[0] + 1], indices[shape[0] + 1 :]
        require(pointers[0] == 0 and pointers[-1] == nnz, "row pointers")
        require(all(a <= b for a, b in pairwise(pointers)), "row pointers")
        places = [(row, columns[i]) for row, (a, b) in enumerate(pairwise(pointers)) for i in range(a, b)]
    else:
        places = list(zip(*(indices[d * nnz : (d + 1) * nnz] for d in range(len(shape))), strict=True))
    require(all(a < b for a, b in pairwise(places)), "order")
    within = (i < extent for place in places for i, extent in zip(place, shape, strict=True))
    require(all(within), "an index")


def restore(entry, coded):
    """F32 numbers from their codes."""
    quant = entry["quant"]
    require(entry["dtype"] == "F32", "a dtype that this reader restores")
    bits, count = quant["bits"], product(entry["shape"])
    minimum, scale = (struct.unpack("<f", bytes.fromhex(quant[key])[::-1])[0]
                      for key in ("min", "scale"))  # fmt: skip
    width = bits if bits in (1, 2, 4) else 8
    per_byte = 8 // width
    codes = [coded[i // per_byte] >> (i % per_byte * width) & (1 << width) - 1
             for i in range(count)]  # fmt: skip
    require(max(codes, default=0) < 1 << bits, "codes")
    return struct.pack(f"<{count}f", *(minimum + code * scale for code in codes))
