"""Deltas, wrapped files and side files that break one rule of the checklist each."""

import hashlib
import struct

import digests
from around import decode_frames, read_table
from refused_header import Case, edit, flip, plus
from refused_tensor import INFINITE
from step_delta import StepDelta
from step_writer import chunk_of

HASH = bytes(31) + b"\1"


def delta(rule, name, field, **fields):
    return Case(rule, name, "small.delta", edit("delta", **fields), f"delta.{field}")


def reference(rule, name, field=None, **fields):
    return Case(rule, name, "small.delta", edit("reference", **fields), field and f"delta.{field}")


def side(rule, name, tensor="moved", field=None, **fields):
    change = edit("side", tensor, **fields)
    return Case(rule, name, "small.delta", change, f"directory.{field or next(iter(fields))}")


def low_rank(name, **fields):
    field = next(iter(fields))
    return Case("L14", name, "small.delta", edit("low_rank", "low_rank", **fields), f"payload.{field}")


def steps(name, base, tensor, at, value, rule="L15"):
    return Case(rule, name, base, edit("stored", tensor, at, value))


def spare_bits_of_tables(e):
    payload = StepDelta("bf16", 5000, e.tensor("chunks").data)
    last = payload.tables_end - 1
    assert payload.data[last] < 0x80
    e.stored("chunks", last, payload.data[last] | 0x80)


def other_last_state(e):
    """Of integers, which all have one class: their steps are known without the base."""
    payload, zeros = StepDelta("i8", 210, e.tensor("i8").data), [0] * 210
    chunk = chunk_of(payload, zeros, payload.decode(0, zeros), (1 << 16) + 1)
    assert len(chunk) == len(payload.chunks[0])
    e.stored("i8", len(payload.data) - len(chunk), chunk)


def spare_bits_of_offsets(e):
    """The highest bit of the byte that the offsets reach last: they have 2,495 bits."""
    payload = bytes(e.tensor("chunks").data)
    at = len(payload) - 312
    assert payload[at] < 0x80
    e.stored("chunks", at, payload[at] | 0x80)


def stored(rule, name, tensor, at, value, field):
    return Case(rule, name, "small.delta", edit("stored", tensor, at, value), f"payload.{field}")


def behind_path(value, offset=0):
    def change(e):
        e.data[128 + struct.unpack_from("<I", e.sound, 64 + 0x34)[0] + offset] = value

    return change


def padding_of_list(e):
    """Between the positions and the values of a list."""
    tensor = e.tensor("few")
    end = (tensor.blocks + 1) * 8 + 2 * tensor.entry.nnz
    assert end < tensor.values_at
    e.stored("few", end, 1)


def bool_in_list(e):
    e.stored("flags", e.tensor("flags").values_at, 2)


def low_rank_place(part):
    """Of the widths, of what is behind them, of the first scale, of the last code."""

    def change(e):
        entry = e.tensor("low_rank").entry
        start = e.start + entry.stored_offset
        rank = struct.unpack_from("<I", e.sound, start)[0]
        parameters = -(-(64 + rank) // 8) * 8
        at, value = {
            "widths": (64, 9),
            "padding": (64 + rank, 1),
            "parameters": (parameters + 8, struct.pack("<d", -1.0)),
            "codes": (entry.stored_length - 1, 0xFF),
        }[part]
        assert part != "padding" or 64 + rank < parameters
        e.stored("low_rank", at, value)

    return change


def other_crc32(e):
    e.side("moved", crc32=plus(1))


def other_content_hash(e):
    e.side("moved", content_hash=bytes(16))


def unused_bits_of_difference(e):
    """The last byte is a literal of the frame as it is."""
    tensor = e.tensor("packed")
    logical = bytearray(tensor.data)
    last = logical[-1]
    logical[-1] |= 0x80

    def change(stored):
        stored[stored.rindex(last)] = logical[-1]
        assert digests.zstandard.ZstdDecompressor().decompress(bytes(stored)) == bytes(logical)

    e.chunk_bytes("packed", 0, change)
    crc = digests.crc32(logical)
    e.entry("packed", crc32=crc, content_hash=digests.content_hash(bytes(logical)))
    e.payload_header("packed", checksum=crc)


DELTA = [
    delta("L1", "original_program", "delta_version", magic=b"\xce\x94THA"),
    delta("L1", "delta_version_3", "delta_version", delta_version=3),
    delta("L2", "base_checkpoint_hash", "base_checkpoint_hash", base_checkpoint_hash=bytes(32)),
    delta("L2", "delta_base_step", "base_step", base_step=1),
    delta("L2", "current_step", "current_step", current_step=1),
    delta("L3", "delta_zero_39", "zero_39", zero_39=bytes(6) + b"\1"),
    reference("L3", "delta_zero_38", "zero_38", zero_38=bytes(7) + b"\1"),
    reference("L3", "reference_length", "reference_length", reference_length=60),
    reference("L3", "container_offset", "container_offset", container_offset=8192),
    reference("L3", "base_generation_0", "base_generation", base_generation=0),
    reference("L3", "depth_0", "depth", depth=0),
    reference("L3", "path_length_0", "path_length", path_length=0),
    Case("L3", "padding_behind_path", "small.delta", behind_path(1), "delta.padding"),
    Case("L4", "delta_crc32", "small.delta", flip(64 + 0x20)),
    Case("L5", "path_with_nul", "small.delta", behind_path(0, -1)),
    Case("L6", "cut_in_front_of_container", "small.delta", lambda e: e.sound[:4000]),
    Case("L7", "container_without_flag", "small.delta", edit("header", flags=plus(-64))),
    Case("L8", "container_generation_2", "small.delta", edit("header", generation=2)),
    side("L9", "result_xor_base", encoding=5),
    side("L9", "result_flags_4", flags=4),
    Case(
        "L16",
        "brief",
        "small.delta",
        edit("side", "moved", flags=2),
        "directory.crc32",
        file="l9_result_flags_2.delta.thalia",
    ),
    Case(
        "L16",
        "brief_of_a_base",
        "small.delta",
        edit("side", "moved", flags=2, crc32=0),
        "directory.base_content_hash",
    ),
    side("L9", "result_zero_02", zero_02=b"\0\1"),
    side("L9", "result_zero_38", zero_38=bytes(7) + b"\1"),
    side("L9", "result_nnz_of_dense", nnz=1),
    side("L9", "result_logical_length", logical_length=plus(1)),
    side("L9", "unchanged_with_another_hash", "same", content_hash=bytes(16)),
    Case(
        "L10", "delta_without_side_data", "small.delta", edit("entry", "moved", side_data_length=0, side_data_offset=0)
    ),
    stored("L11", "block_pointers", "few", 0, 1, "block_pointers"),
    stored("L11", "positions_descend", "flags", 16, b"\xff\xff", "positions"),
    Case("L12", "padding_of_a_list", "small.delta", padding_of_list),
    Case("L13", "bool_2_in_a_list", "small.delta", bool_in_list),
    low_rank("rank", rank=99),
    low_rank("low_rank_generation", lossy_generation=0),
    low_rank("low_rank_code_length", code_length=plus(1)),
    low_rank("low_rank_max_error", max_error=INFINITE),
    low_rank("low_rank_rms_error", rms_error=INFINITE),
    low_rank("low_rank_relative_error", relative_error=INFINITE),
    low_rank("low_rank_zero_28", zero_28=bytes(23) + b"\1"),
    Case("L9", "steps_of_f32", "small.delta", edit("entry", "moved", encoding=8), "directory.encoding"),
    steps("table_128", "steps.delta", "bf16", 0, 128),
    steps("table_254", "steps.delta", "bf16", 0, 254),
    steps("first_class_of_integers", "steps.delta", "i8", 1, 1),
    steps("first_class_of_e8m0", "steps.delta", "f8_e8m0", 1, 1),
    steps("lanes_log2_6", "steps.delta", "f16", 2, 6),
    steps("chunk_log2_11", "steps.delta", "u16", 3, 11),
    steps("chunk_log2_25", "steps.delta", "u16", 3, 25),
    steps("chunk_lengths_of_more", "steps_level.delta", "chunks", 7, 1),
    steps("chunk_lengths_of_less", "steps_level.delta", "chunks", 4, 0),
    steps("no_classes", "steps_one_table.delta", "chunks", 4, 0),
    steps("classes_33", "steps_one_table.delta", "chunks", 4, 33),
    # A bit for "present", then l = 15 and m = 7 of g1.
    steps("frequencies_of_more_than_all", "steps_one_table.delta", "chunks", 5, 0xFF),
    Case("L15", "spare_bits_of_tables", "steps_one_table.delta", spare_bits_of_tables),
    Case("T21", "unused_bits_of_a_difference", "packed.delta", unused_bits_of_difference),
    *[
        Case("L14", f"low_rank_{part}", "small.delta", low_rank_place(part), f"payload.{part}")
        for part in ("widths", "parameters", "codes", "padding")
    ],
]


# Beside a copy of their base: rules that no delta breaks alone.
CHAIN = [
    Case(
        "B1",
        "chain_base_checksum",
        "small.delta",
        lambda e: (e.header(base_checksum=HASH), e.delta(base_checkpoint_hash=HASH)) and None,
    ),
    reference("B1", "chain_base_uuid", base_uuid=bytes(16)),
    reference("B1", "chain_base_generation", base_generation=2),
    reference("B2", "chain_depth", depth=2),
    side("B3", "chain_base_content_hash", base_content_hash=bytes(16)),
    Case("B4", "chain_crc32", "small.delta", other_crc32, "payload.crc32"),
    Case("B4", "chain_content_hash", "small.delta", other_content_hash, "payload.content_hash"),
    Case("B5", "chain_crc32_of_unchanged", "small.delta", edit("side", "same", crc32=plus(1))),
    Case("B6", "chain_tensor_of_none", "small.delta", lambda e: renamed(e)),
    # In the first state, whose higher half is not 0; in the first word.
    steps("chain_state_too_small", "steps_wide.delta", "chunks", 6, b"\0\0", "B8"),
    steps("chain_other_word", "steps_wide.delta", "chunks", 8, b"\x5a\xa5", "B8"),
    Case("B8", "chain_other_last_state", "steps.delta", other_last_state),
    Case("B8", "chain_spare_bits_of_offsets", "steps_wide.delta", spare_bits_of_offsets),
]


def renamed(e):
    """The first tensor of region a, which becomes one that the base does not have."""
    first = min((t for t in e.file.tensors if t.side), key=lambda t: t.entry.place)
    start = e.file.header.directory_offset + e.file.directory.names_offset
    e.byte(start + first.entry.name_offset, ord("A"))


def footer(offset, value):
    def change(sound):
        data = bytearray(sound)
        at = len(data) - 9 + offset
        data[at : at + len(value)] = value
        return bytes(data)

    return change


def table_entry(number, offset, value):
    def change(sound):
        data = bytearray(sound)
        count = struct.unpack_from("<I", data, len(data) - 9)[0]
        at = len(data) - 9 - 8 * (count - number) + offset
        struct.pack_into("<I", data, at, value)
        return bytes(data)

    return change


def table_length(sound):
    data = bytearray(sound)
    count = struct.unpack_from("<I", data, len(data) - 9)[0]
    struct.pack_into("<I", data, len(data) - 9 - 8 * count - 4, 9 + 8 * count + 1)
    return bytes(data)


def broken_frame(sound):
    data = bytearray(sound)
    data[len(data) // 4] ^= 0xFF
    return bytes(data)


def without_table(sound):
    count = struct.unpack_from("<I", sound, len(sound) - 9)[0]
    return bytes(sound[: len(sound) - 17 - 8 * count])


def with_checksums(sound, change=0):
    """Its frames with their checksums in the seek table; `change` turns bits of the last one."""
    table = bytearray(b"\x5e\x2a\x4d\x18")
    frames = read_table(sound)
    table += struct.pack("<I", 12 * len(frames) + 9)
    for at, entry, _ in frames:
        content = decode_frames(sound[at : at + entry.stored_length])
        table += struct.pack("<II", entry.stored_length, entry.content_length)
        table += digests.low_xxh64(content)
    table[-1] ^= change
    return without_table(sound) + bytes(table) + struct.pack("<IB", len(frames), 0x80) + sound[-4:]


ZST = "pieces.thalia.zst"
WRAPPER = [
    Case("W1", "descriptor_bit_2", ZST, footer(4, b"\4"), "wrapper.descriptor"),
    Case("W1", "no_frames", ZST, footer(0, bytes(4)), "wrapper.frame_count"),
    Case("W1", "too_many_frames", ZST, footer(0, b"\xff\xff\0\0"), "wrapper.frame_count"),
    Case("W1", "table_length", ZST, table_length, "wrapper.length"),
    Case("W1", "frame_of_no_bytes", ZST, table_entry(0, 0, 0), "wrapper.stored_length"),
    Case("W1", "frames_end_elsewhere", ZST, table_entry(0, 0, 50), "wrapper.stored_length"),
    Case("W1", "impossible_content", ZST, table_entry(0, 4, 0xFFFFFFFF), "wrapper.content_length"),
    Case("W2", "broken_frame", ZST, broken_frame),
    Case("W2", "broken_frame_lz4", "pieces.thalia.lz4", broken_frame),
    Case("W3", "bytes_behind_frames", ZST, lambda sound: without_table(sound) + b"what is this"),
    Case("W4", "frame_that_does_not_end", ZST, lambda sound: without_table(sound)[:-9]),
    *[
        Case("W5", f"checksum_of_a_frame{name}", f"pieces.thalia.{ending}", lambda sound: with_checksums(sound, 1))
        for name, ending in (("", "zst"), ("_lz4", "lz4"))
    ],
]


def meta(change, crc=True, closing=True):
    """A side file with its header and extents changed, and its checksums made anew."""

    def apply(sound):
        data = bytearray(sound)
        data = change(data) or data
        count = struct.unpack_from("<I", sound, 0x0C)[0]
        if crc:
            struct.pack_into("<I", data, 8, digests.crc32_without(data[: 64 + 16 * count], 8))
        if closing:
            data[-32:] = hashlib.sha256(data[:-32]).digest()
        return bytes(data)

    return apply


def meta_field(form, at, value):
    def change(data):
        old = struct.unpack_from(form, data, at)[0]
        struct.pack_into(form, data, at, value(old) if callable(value) else value)

    return change


def flip_meta(data):
    data[8] ^= 1


def without_config(data):
    """The extent with the first region's headers and config loses its last byte."""
    length = struct.unpack_from("<Q", data, 64 + 16 + 8)[0]
    first = struct.unpack_from("<Q", data, 64 + 8)[0]
    count = struct.unpack_from("<I", data, 0x0C)[0]
    struct.pack_into("<Q", data, 64 + 16 + 8, length - 1)
    del data[64 + 16 * count + first + length - 1]
    struct.pack_into("<Q", data, 0x18, len(data))


def longer_source(data):
    """64 bytes more of the source, the last of which repeat its closing checksum."""
    count, source_length = struct.unpack_from("<IQ", data, 0x0C)
    last = 64 + 16 * (count - 1) + 8
    struct.pack_into("<Q", data, last, struct.unpack_from("<Q", data, last)[0] + 64)
    struct.pack_into("<QQ", data, 0x10, source_length + 64, len(data) + 64)
    return data[:-32] + bytes(32) + data[0x20:0x40] + data[-32:]


META = "connections.thalia.meta"
SIDE = [
    Case("S1", "meta_version_2", META, meta(meta_field("<I", 4, 2))),
    Case("S2", "meta_crc32", META, meta(flip_meta, crc=False)),
    Case("S3", "meta_length", META, meta(meta_field("<Q", 0x18, lambda n: n - 1))),
    Case("S4", "no_extents", META, meta(meta_field("<I", 0x0C, 0)), "side_file.extent_count"),
    Case("S4", "source_length_small", META, meta(meta_field("<Q", 0x10, 255)), "side_file.source_length"),
    Case("S4", "extent_empty", META, meta(meta_field("<Q", 64 + 8, 0)), "side_file.extent"),
    Case("S5", "extents_of_other_bytes", META, meta(meta_field("<Q", 64 + 8, lambda n: n - 1))),
    Case("S6", "side_file_damaged", META, lambda sound: sound[:-1] + bytes([sound[-1] ^ 1])),
    Case("S7", "source_checksum", META, meta(meta_field("<B", 0x20, lambda n: n ^ 1)), "side_file.source_checksum"),
    Case("S7", "source_length_of_another", META, meta(longer_source), "side_file.source_length"),
    Case("S8", "extent_too_short", META, meta(without_config)),
    Case("S9", "cut_side_file", META, lambda sound: sound[:-1], "side_file.meta_length"),
    Case("S9", "side_file_without_extents", META, lambda sound: sound[:80], "side_file"),
]
