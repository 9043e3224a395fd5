"""Weights found without the directory, as a program does that knows the source specification only:
docs/format/format.md, "Finding weights without the directory"."""

import math
import struct
import zlib

import structures as s
from elements import DTYPES
from structures import align


def dense(data, at):
    """(element type, shape, bytes of the payload) by the TensorHeader at `at`."""
    header = s.TENSOR_HEADER.read(data, at)
    length = -(-math.prod(header.shape) * DTYPES[header.dtype][1] // 8)
    return header.dtype, header.shape, length


def csr(data, at, width):
    """The same by a CsrHeader, with indices of so many bytes."""
    header = s.CSR_HEADER.read(data, at)
    _, bits, alignment = DTYPES[header.dtype]
    values = align((header.n_rows + 1 + header.nnz) * width, alignment)
    return header.dtype, (header.n_rows, header.n_cols), values + header.nnz * bits // 8


def candidates(data, at):
    """What the header may describe: bytes 1 to 3 tell a TensorHeader but for that of a scalar."""
    if any(data[at + 1 : at + 4]):
        yield dense(data, at)
        return
    yield csr(data, at, 4)
    yield csr(data, at, 8)
    if struct.unpack_from("<QQQ", data, at + 4) == (1, 1, 1):
        yield dense(data, at)


def payload(data, at):
    """The candidate whose CRC-32 holds; None where none does."""
    (checksum,) = struct.unpack_from("<I", data, at + 28)
    for dtype, shape, length in candidates(data, at):
        if zlib.crc32(data[at + 32 : at + 32 + length]) == checksum:
            return dtype, shape, length
    return None


def weights(data):
    """(element type, shape, offset of the payload) of every weight tensor before the first coo.

    ValueError where a payload is damaged."""
    index, length = struct.unpack_from("<QQ", data, 0x24)
    for entry_at in range(index, index + length, 48):
        region = s.REGION_INDEX_ENTRY.read(data, entry_at).data_offset
        header = s.REGION_HEADER.read(data, region)
        at = region + header.weights_offset
        end = at + header.weights_length
        while at < end:
            if not any(data[at : at + 32]):
                at += 64
                continue
            if data[at + 2] == 1:  # a coo, whose length its header does not tell
                break
            found = payload(data, at)
            if found is None:
                raise ValueError(f"damaged payload after the header at {at}")
            yield found[0], found[1], at + 32
            at = align(at + found[2], 64) + 32
