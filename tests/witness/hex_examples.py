"""The short examples of the format's pages, line by line: from the library's files but for low_rank_delta,
whose numbers a singular value decomposition would not give so plainly, and step_delta, which the library's writer
has no cause to give explicit tables where it is so short."""

import re
import struct

import elements
import structures as s
from annotate import rows, structure
from step_writer import step_delta

from checkpoint import Checkpoint

LOW_RANK_BASE = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0)
LOW_RANK_RESULT = (1.0, 2.5, 4.5, 4.0, 6.5, 10.5)
# Numbers of bf16, as their bits, and the tables of the two classes: l and m of each number.
STEP_BASE = (0x3F80, 0xBF80, 0x3F81, 0x3F90, 0x3FC0, 0x4000, 0x4040, 0xC040, 0x4080, 0x4000)
STEP_RESULT = (0x3F80, 0xBF80, 0x3F81, 0x3F91, 0x3FC0, 0x4000, 0x4040, 0xC045, 0x4080, 0x4000)
STEP_TABLES = (None, ((12, 4), (0, 0), (0, 0), (11, 0), (0, 0), (0, 0), (0, 0), (1, 0)))


def text(*parts):
    return "".join(line + "\n" for part in parts for line in part)


def numbers(values):
    return ", ".join(map(str, values))


def errors_as_numbers(lines):
    """Fields that hold the bits of an f64, as that."""

    def number(match):
        return f"{match[1]} {struct.unpack('<d', struct.pack('<Q', int(match[2])))[0]}"

    return [re.sub(r"(\w+_error) (\d+)$", number, line) for line in lines]


def tensor(data, name):
    return next(t for t in Checkpoint(memoryview(data)).tensors if t.name == name)


def numbered(label, dtype, data, start, end):
    """Rows of an array in data[start:end]."""
    count = (end - start) * 8 // elements.bits_of(dtype)
    found = elements.values(dtype, bytes(data[start:end]), count)
    return rows(start, data[start:end], f"{label} {numbers(found)}")


def coo(data):
    own = tensor(data, "coo")
    logical, nnz = own.data, own.entry.nnz
    indices = [numbered(f"dimension {d}:", "u32", logical, 4 * nnz * d, 4 * nnz * (d + 1)) for d in range(3)]
    padding = rows(own.indices_end, logical[own.indices_end : own.values_at], "padding")
    values = numbered("values", own.dtype, logical, own.values_at, len(logical))
    return text(*indices, padding, values)


def quantized(data):
    """(side data, arrays)"""
    own = tensor(data, "quantized")
    side = own.quantized.side
    record = bytes(own.file.data[side.offset : side.offset + 64])
    arrays, logical = own.quantized, own.data
    minima = numbered("minima", "f32", logical, arrays.minima_at, arrays.scales_at)
    scales = numbered("scales", "f32", logical, arrays.scales_at, arrays.codes_at)
    lines, at = [], arrays.codes_at
    for group, count in enumerate((8, 2)):
        end = at + -(-count * side.bits // 8)
        found = elements.codes(bytes(logical[at:end]), count, side.bits)
        lines += rows(at, logical[at:end], f"codes of group {group}: {numbers(found)}")
        at = end
    side_lines = errors_as_numbers(structure(record, s.QUANTIZED_TENSOR, 0))
    return text(side_lines), text(minima, scales, lines)


def sparse_delta(container):
    """(side data, arrays)"""
    own = tensor(container, "few")
    logical, nnz = own.data, own.entry.nnz
    pointers_end = 8 * (own.blocks + 1)
    positions_end = pointers_end + 2 * nnz
    record = bytes(own.file.data[own.side.offset : own.side.offset + 64])
    return text(structure(record, s.DELTA_TENSOR, 0)), text(
        numbered("block_pointers", "u64", logical, 0, pointers_end),
        numbered("positions", "u16", logical, pointers_end, positions_end),
        rows(positions_end, logical[positions_end : own.values_at], "padding"),
        numbered("values", own.dtype, logical, own.values_at, len(logical)),
    )


def low_rank_payload():
    header = struct.pack("<IHHQQQQ24x", 1, 1, 10, 2, 0, 0, 0)
    return header + b"\x02" + bytes(7) + struct.pack("<4d", 1, 1, 0, 0.5) + b"\x08\x34"


def low_rank_delta():
    data = low_rank_payload()
    return text(
        errors_as_numbers(structure(data, s.LOW_RANK_HEADER, 0)),
        rows(64, data[64:65], "widths 2"),
        rows(65, data[65:72], "padding"),
        numbered("column: minimum, scale", "f64", data, 72, 88),
        numbered("row: minimum, scale", "f64", data, 88, 104),
        rows(104, data[104:105], "codes of the column: 0, 2"),
        rows(105, data[105:106], "codes of the row: 0, 1, 3"),
    )


def step_payload():
    return step_delta("bf16", STEP_BASE, STEP_RESULT, (255, 127, 0, 12), STEP_TABLES)


def step_example():
    data = step_payload()
    return text(
        structure(data, s.STEP_DELTA_HEADER, 0),
        rows(4, data[4:5], "K 2"),
        rows(5, data[5:10], "no table; g1 3072, g4 1024, g_escape 1, the others 0"),
        numbered("state", "u32", data, 10, 14),
        numbered("word", "u16", data, 14, 16),
        rows(16, data[16:], "offset 1, of 2 bits"),
    )


def delta_front(data):
    reference = s.DELTA_REFERENCE.read(data, 64)
    end = 128 + reference.path_length
    assert not any(data[end : reference.container_offset])
    return text(
        structure(data, s.DELTA_HEADER, 0),
        structure(data, s.DELTA_REFERENCE, 64),
        rows(128, data[128:end], data[128:end].decode()),
        [f"{end:04x}  zeros up to {reference.container_offset}, where the container begins"],
    )


def seek_table(data):
    footer = s.SEEK_FOOTER.read(data, len(data) - 9)
    table = data[len(data) - 9 - 8 * footer.frame_count - 8 :]
    return text(
        structure(table, s.SKIPPABLE_HEADER, 0),
        *(structure(table, s.SEEK_ENTRY, 8 + 8 * i) for i in range(footer.frame_count)),
        structure(table, s.SEEK_FOOTER, len(table) - 9),
    )


def side_file(data):
    header = s.META_HEADER.read(data, 0)
    at = 64 + 16 * header.extent_count
    parts = [structure(data, s.META_HEADER, 0)]
    for i in range(header.extent_count):
        extent = s.META_EXTENT.read(data, 64 + 16 * i)
        parts.append(structure(data, s.META_EXTENT, 64 + 16 * i))
        parts.append([f"      its bytes stand from {at} on"])
        at += extent.length
    return text(*parts, rows(at, data[at:], "closing checksum"))
