"""Directories, tensors, chunks and connections that break one rule of the checklist each."""

import struct

from refused_header import ALL, Case, edit, plus

ALL32 = (1 << 32) - 1


def directory(rule, name, field, **fields):
    return Case(rule, name, "minimal", edit("directory", **fields), f"directory.{field}")


def record(rule, name, field=None, base="minimal", **fields):
    return Case(rule, name, base, edit("record", 0, **fields), field and f"directory.{field}")


def entry(rule, name, tensor="w", base="minimal", finding=None, **fields):
    return Case(rule, name, base, edit("entry", tensor, **fields), finding)


def region_order(*numbers):
    def change(e):
        at = e.file.header.directory_offset + e.file.directory.region_order_offset
        for i, byte in enumerate(struct.pack(f"<{len(numbers)}I", *numbers)):
            e.byte(at + i, byte)

    return change


def name_bytes(of, text):
    """The first bytes of a tensor's name, or of a region's by its number."""

    def change(e):
        named = e.file.records[of] if isinstance(of, int) else e.tensor(of).entry
        at = e.file.header.directory_offset + e.file.directory.names_offset + named.name_offset
        for i, byte in enumerate(text):
            e.byte(at + i, byte)

    return change


def one_short_name(e):
    """Region 0 gets the name by which connections know region 1."""
    text = e.file.regions[1].entry.region_name
    name_bytes(0, text[:31])(e)
    e.index(0, region_name=text)
    region_order(1, 0, 2, 3)(e)


def stored(rule, name, base, tensor, at, value, finding=None):
    return Case(rule, name, base, edit("stored", tensor, at, value), finding)


def wide_extent(e):
    """2^33 rows, which a coo tensor's u32 indices cannot tell apart."""
    e.shape("coo.i8", 1 << 33, 4)
    e.payload_header("coo.i8", shape=struct.pack("<3Q", 1 << 33, 4, 1))


def encoding_of_a_delta(e):
    e.entry("w", encoding=4, logical_length=0, stored_length=0)


def values_at(tensor, number):
    def change(e):
        e.stored(tensor, e.tensor(tensor).values_at + number, 2)

    return change


def padding_in(tensor):
    def change(e):
        e.stored(tensor, e.tensor(tensor).indices_end, 1)

    return change


TENSOR = [
    directory("D1", "directory_magic", "magic", magic=b"tDIR"),
    directory("D2", "directory_version_2", "directory_version", directory_version=2),
    directory("D2", "directory_zero_58", "zero_58", zero_58=bytes(39) + b"\1"),
    directory("D2", "region_count", "region_count", region_count=0),
    directory("D2", "regions_offset", "regions_offset", regions_offset=136),
    directory("D2", "region_order_offset", "region_order_offset", region_order_offset=plus(8)),
    directory("D2", "tensors_offset", "tensors_offset", tensors_offset=0),
    directory("D2", "chunks_offset", "chunks_offset", chunks_offset=plus(8)),
    directory("D2", "names_offset", "names_offset", names_offset=plus(8)),
    directory("D2", "side_data_offset", "side_data_offset", names_length=0),
    Case("D3", "directory_crc32", "minimal", lambda e: bytes_at(e, e.file.header.directory_offset + 12)),
    directory("D4", "names_too_long", "names_offset", names_length=ALL),
    directory("D4", "side_data_too_long", "side_data_offset", side_data_length=8),
    record("D5", "region_name_outside", "name_offset", name_offset=ALL32),
    record("D5", "region_run_outside", "first_tensor", first_tensor=ALL32),
    record("D6", "region_without_name", "name_length", name_length=0),
    record("D6", "region_flags", "flags", flags=1),
    Case("D7", "run_with_a_gap", "pieces", edit("record", 0, first_tensor=1, tensor_count=plus(-1))),
    Case("D8", "tensor_of_no_region", "minimal", edit("record", 0, tensor_count=0)),
    record("D9", "logical_bytes", "logical_bytes", logical_bytes=plus(1)),
    record("D9", "stored_bytes", "stored_bytes", stored_bytes=plus(-1)),
    Case("D10", "region_order_twice", "pieces", region_order(1, 1)),
    Case("D10", "region_order_swapped", "pieces", region_order(1, 0)),
    Case("D11", "tensor_name_no_utf8", "pieces", name_bytes("w_rec", b"\xff")),
    Case("D11", "region_name_no_utf8", "pieces", name_bytes(1, b"\xc0")),
    Case("D11", "region_name_with_nul", "pieces", name_bytes(1, b"\0")),
    Case("D12", "tensors_out_of_order", "pieces", name_bytes("w_rec", b"a")),
    Case("R6", "one_short_name", "names", one_short_name),
    entry("T1", "tensor_name_outside", name_offset=ALL32),
    entry("T2", "role_12", finding="directory.role", role=12),
    entry("T2", "encoding_9", finding="directory.encoding", encoding=9),
    entry("T2", "dtype_29", finding="directory.dtype", dtype=29),
    entry("T2", "ndim_9", finding="directory.ndim", ndim=9),
    entry("T2", "tensor_flags_2", finding="directory.flags", flags=2),
    entry("T2", "tensor_zero_54", finding="directory.zero_54", zero_54=1),
    entry("T2", "tensor_zero_98", finding="directory.zero_98", zero_98=bytes(7) + b"\1"),
    Case("T3", "shape_behind_ndim", "minimal", edit("shape", "w", 2, 3, 1)),
    Case("T4", "shape_too_large", "minimal", edit("shape", "w", ALL, 3)),
    entry("T5", "nnz_of_dense", finding="directory.nnz", nnz=1),
    entry("T5", "wide_of_dense", finding="directory.flags", flags=1),
    Case("T6", "narrow_indices_of_a_large_extent", "sparse", wide_extent),
    entry("T7", "packed_csr", "csr.i8", "sparse", dtype=21),
    entry("T8", "logical_length", logical_length=plus(1)),
    entry("T9", "stored_length", stored_length=plus(-1)),
    entry("T10", "side_data_of_dense", finding="directory.side_data_length", side_data_length=64),
    Case(
        "T10",
        "side_data_offset_alone",
        "one.delta",
        edit("entry", "new", side_data_offset=8),
        "directory.side_data_offset",
    ),
    Case(
        "T10",
        "side_data_missing",
        "quantized",
        edit("entry", "w", side_data_length=0, side_data_offset=0),
        "directory.side_data_length",
    ),
    Case("T11", "side_data_outside", "quantized", edit("entry", "w", side_data_offset=plus(64))),
    entry("T12", "payload_unaligned", "w_ff", "pieces", stored_offset=plus(1)),
    entry("T13", "payload_outside", stored_offset=ALL - 63),
    entry("T14", "first_chunk_of_raw", first_chunk=1),
    entry("T15", "chunks_outside", chunk_count=1),
    Case("T16", "encoding_of_a_delta", "minimal", encoding_of_a_delta),
    Case("T24", "encoding_8", "minimal", edit("entry", "w", encoding=8), file="t2_encoding_8.thalia"),
    *[
        Case(
            "T17",
            f"payload_header_{field}",
            "minimal",
            edit("payload_header", "w", **{field: change}),
            f"payload.{field}",
        )
        for field, change in (
            ("dtype", plus(1)),
            ("ndim", 3),
            ("reserved", 1),
            ("shape", plus(1)),
            ("checksum", plus(1)),
        )
    ],
    *[
        Case(
            "T17", f"csr_header_{field}", "sparse", edit("payload_header", "csr.f32", **{field: 9}), f"payload.{field}"
        )
        for field in ("n_rows", "n_cols", "nnz", "reserved")
    ],
    Case("T18", "payload_damaged", "minimal", edit("stored", "w", 0, 9, digest=False)),
    Case("T18", "payload_damaged_none", "checksum_none", edit("stored", "w", 0, 9, digest=False)),
    entry("T19", "content_hash", content_hash=bytes(16)),
    stored("T20", "bool_2", "dtypes", "bool", 1, 2),
    stored("T20", "ternary_minus_two", "dtypes", "ternary", 0, 2),
    Case("T20", "bool_2_in_csr", "sparse", values_at("csr.bool", 1)),
    Case("T20", "bool_2_in_coo", "sparse", values_at("coo.bool", 0)),
    stored("T21", "unused_bits_of_i4", "dtypes", "i4", -1, 0x10),
    stored("T21", "unused_bits_of_binary", "dtypes", "binary", 0, 0x20),
    stored("T22", "csr_first_pointer", "sparse", "csr.f32", 0, 1),
    stored("T22", "csr_last_pointer", "sparse", "csr.f32", 12, 9),
    stored("T22", "csr_column_outside", "sparse", "csr.f32", 16, 4),
    stored("T22", "csr_columns_descend", "sparse", "csr.f32", 20, 3),
    stored("T22", "coo_index_outside", "sparse", "coo.f32", 0, 3),
    stored("T22", "coo_entry_twice", "sparse", "coo.f32", 20, 2),
    Case("T23", "padding_in_csr", "sparse", padding_in("csr.f64")),
]


def bytes_at(e, at):
    data = bytearray(e.sound)
    data[at] ^= 1
    return bytes(data)


def side(rule, name, **fields):
    (field,) = fields
    return Case(rule, name, "quantized", edit("side", "w", **fields), f"directory.{field}")


def not_finite(kind, number=0):
    """Parameters follow each other: minima, then scales, of f32 here."""

    def change(e):
        quantized = e.tensor("w").quantized
        at = {"minima": quantized.minima_at, "scales": quantized.scales_at}[kind] + 4 * number
        e.stored("w", at, struct.pack("<f", float("inf")))

    return change


def negative_scale(e):
    e.stored("w", e.tensor("w").quantized.scales_at, struct.pack("<f", -1.0))


def other_elements(e):
    """A scale that makes other elements of the codes."""
    e.stored("w", e.tensor("w").quantized.scales_at, struct.pack("<f", 7.0))


def other_content_hash(e):
    e.side("w", content_hash=bytes(16))


def quantized_i8(e):
    e.entry("w", dtype=2)
    e.payload_header("w", dtype=2)


INFINITE = struct.pack("<d", float("inf"))

QUANTIZED = [
    side("Q1", "quantized_bits_9", bits=9),
    side("Q1", "quantized_zero_01", zero_01=1),
    side("Q1", "quantized_zero_06", zero_06=1),
    side("Q1", "quantized_zero_38", zero_38=bytes(7) + b"\1"),
    side("Q1", "lossy_generation_0", lossy_generation=0),
    side("Q1", "lossy_generation_11", lossy_generation=11),
    side("Q1", "group_size_12", group_size=12),
    side("Q1", "code_length", code_length=plus(1)),
    side("Q1", "max_error", max_error=INFINITE),
    side("Q1", "rms_error", rms_error=INFINITE),
    Case("Q2", "quantized_i8", "quantized", quantized_i8),
    Case("Q3", "minimum_infinite", "quantized", not_finite("minima"), "payload.minima"),
    Case("Q3", "scale_infinite", "quantized", not_finite("scales"), "payload.scales"),
    Case("Q3", "scale_negative", "quantized", negative_scale, "payload.scales"),
    stored("Q3", "width_9", "quantized_widths", "w", 0, 9, "payload.widths"),
    Case(
        "Q4",
        "padding_behind_widths",
        "quantized_widths",
        lambda e: e.stored("w", e.tensor("w").quantized.groups, 1),
        "payload.padding",
    ),
    stored("Q4", "unused_bits_of_codes", "quantized", "w", -1, 0xFF, "payload.codes"),
    Case("Q5", "other_crc32", "quantized", edit("side", "w", crc32=plus(1)), "payload.crc32"),
    Case("Q5", "other_elements", "quantized", other_elements, "payload.crc32"),
    Case("Q5", "other_content_hash", "quantized", other_content_hash, "payload.content_hash"),
]


def chunk(rule, name, field, base="one_chunk", **fields):
    return Case(rule, name, base, edit("chunk", "f32", 0, **fields), f"directory.{field}")


def chunk_bytes(rule, name, base, at, value, finding=None, tensor="f32"):
    def change(e):
        def put(stored):
            stored[at] = value

        e.chunk_bytes(tensor, 0, put)

    return Case(rule, name, base, change, finding)


CHUNK = [
    chunk("C1", "chunk_offset", "offset", offset=plus(1)),
    chunk("C1", "chunk_raw_length", "raw_length", raw_length=plus(1)),
    chunk("C1", "chunk_stored_length_0", "stored_length", stored_length=0),
    chunk("C1", "codec_5", "codec", codec=5),
    chunk("C1", "filter_6", "filter", filter=6),
    chunk("C1", "chunk_zero_16", "zero_16", zero_16=1),
    chunk("C1", "store_of_another_length", "stored_length", codec=0),
    Case("C2", "chunk_crc32", "one_chunk", edit("chunk", "f32", 0, crc32=plus(1))),
    chunk_bytes("C3", "no_zstd_frame", "one_chunk", 0, 0),
    chunk_bytes("C3", "no_lz4_frame", "lz4", 0, 0),
    chunk_bytes("C3", "plane_entropy_element_bytes", "plane_entropy", 0, 3),
    chunk_bytes("C3", "packed_exponents_element_bytes", "packed_exponents", 0, 3),
    Case("T18", "another_filter", "one_chunk", edit("chunk", "f32", 0, filter=1), file="c4_another_filter.thalia"),
]


def connection(rule, name, finding=None, **fields):
    return Case(rule, name, "connections", edit("connection", 0, **fields), finding)


def connectivity(rule, name, finding=None, **fields):
    return Case(rule, name, "connections", edit("connectivity", **fields), finding)


def connection_twice(e):
    """Connection 2 says that it is connection 0."""
    e.connection(2, target_region=e.file.regions[1].entry.region_name)


def matrix_of_none(e):
    """There is no connection 7: its name stands where that of the last one stood."""
    name_bytes("2.weights", b"7")(e)


def longer_connectivity(e):
    """Its last matrix ends before it."""
    e.header(connectivity_length=plus(8))


CONNECTIVITY = [
    connectivity("N1", "more_connections_than_fit", num_connections=ALL32),
    connectivity("N2", "no_connections", num_connections=0),
    connectivity("N3", "connectivity_zero_04", "connectivity.zero_04", zero_04=1),
    connectivity("N3", "connectivity_zero_08", "connectivity.zero_08", zero_08=bytes(23) + b"\1"),
    connection("N4", "source_of_none", "connectivity.source_region", source_region=b"I" + bytes(31)),
    connection("N4", "target_of_none", "connectivity.target_region", target_region=b"x" + bytes(31)),
    connection("N10", "source_behind_nul", "connectivity.source_region", source_region=b"in" + bytes(28) + b"x\0"),
    connection("N10", "target_without_nul", "connectivity.target_region", target_region=b"x" * 32),
    Case("N5", "connection_twice", "connections", connection_twice),
    connection("N6", "weight_offset", "connectivity.weight_offset", weight_offset=plus(64)),
    connection("N6", "weight_length", "connectivity.weight_offset", weight_length=ALL),
    connection("N6", "delay_offset", "connectivity.delay_offset", delay_offset=0, delay_length=0),
    Case("N6", "matrix_of_none", "connections", matrix_of_none, "connectivity.weight_offset"),
    Case("N7", "role_of_weights", "connections", edit("entry", "0.weights", role=8)),
    connectivity("N8", "matrix_beside", num_connections=2),
    Case("N9", "connectivity_longer", "connections", longer_connectivity),
]
