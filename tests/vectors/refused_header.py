"""Headers, sections and regions that break one rule of the verifier's checklist each."""

import struct
from collections import namedtuple

import elements

# rule of docs/format/format.md, name, the valid file it is made of, the change, and the finding where the
# rule names several. A change that returns bytes gives the file as it is, unsealed.
# `file`: its name, where the rule has got another number since it was published.
Case = namedtuple("Case", "rule name base change finding file", defaults=[None, None])

ALL = (1 << 64) - 1
BINARY = [name for name, _, _ in elements.DTYPES].index("binary")


def edit(method, *arguments, **fields):
    """Calls an Editor's method."""
    return lambda e: getattr(e, method)(*arguments, **fields)


def header(rule, name, base="minimal", finding=None, **fields):
    return Case(rule, name, base, edit("header", **fields), finding)


def unsealed(change):
    def apply(e):
        data = bytearray(e.sound)
        change(data, e)
        return bytes(data)

    return apply


def flip(at, mask=1):
    """A byte of the file, from its end where `at` is negative."""

    def change(data, _):
        data[at] ^= mask

    return unsealed(change)


def plus(number):
    return lambda old: old + number


def swapped_roles(e):
    """Region state behind learning state, and every field that follows from that."""
    e.entry("membrane", role=3)
    e.entry("trace", role=2)
    places = [e.tensor(n).entry.stored_offset - 32 - e.file.regions[0].offset for n in ("membrane", "trace")]
    e.dynamic(0, region_state_offset=places[1], learning_state_offset=places[0])


def second_region_in_first(e):
    first = e.file.regions[0].entry
    e.index(1, data_offset=first.data_offset, data_length=first.data_length)


def json_byte(piece, at, value):
    def change(e):
        region = e.file.regions[0]
        start = {
            "metadata": e.file.header.metadata_offset,
            "config": region.offset + region.header.config_offset,
            "region": region.offset + region.extension.region_metadata_offset,
        }[piece]
        e.byte(start + at, value)

    return change


def padding_behind(name):
    def change(e):
        entry = e.tensor(name).entry
        e.byte(entry.stored_offset + entry.stored_length, 1)

    return change


def behind_metadata(e):
    e.byte(e.file.header.metadata_offset + e.file.header.metadata_length, 1)


def behind_region_order(e):
    directory = e.file.directory
    e.byte(e.file.header.directory_offset + directory.region_order_offset + 4, 1)


def unowned_name(e):
    """The last name gets shorter by a byte, which stays."""
    last = max(e.file.tensors, key=lambda t: t.entry.name_offset)
    e.entry(last.name, name_length=last.entry.name_length - 1)


def unowned_side_data(e):
    """Two tensors have one stretch of it, and another nobody has."""
    e.entry("same", side_data_offset=e.tensor("moved").entry.side_data_offset)


def synapses_past_2_64(e):
    """2^64 - 1 elements of a bit each, of which a delta stores none; total_synapses is the sum
    modulo 2^64."""
    e.shape("same", ALL)
    e.entry("same", dtype=BINARY)
    e.payload_header("same", dtype=BINARY, shape=struct.pack("<3Q", ALL, 1, 1))
    e.side("same", logical_length=1 << 61)
    e.header(flags=plus(-32), total_synapses=plus(ALL - 9))


HEADER = [
    header("H1", "magic", magic=b"THAM"),
    Case("H2", "shorter_than_a_header", "minimal", lambda e: e.sound[:255]),
    header("H3", "major_version", major_version=2),
    Case("H4", "header_crc32", "minimal", flip(0x54)),
    header("H5", "flags_bit_7", flags=1 << 7),
    header("H5", "flags_bit_15", flags=1 << 15),
    header("H6", "incompatible_features", incompatible_features=1),
    header("H7", "zero_d2", finding="header.zero_d2", zero_d2=b"\0\1"),
    header("H7", "zero_dc", finding="header.zero_dc", zero_dc=bytes(35) + b"\1"),
    header("H8", "generation_0", generation=0),
    header("H9", "file_length", file_length=plus(1)),
    Case("H9", "cut_short", "minimal", lambda e: e.sound[:-1]),
    header("H10", "checksum_type_4", checksum_type=4),
    header("H11", "block_log2_11", finding="header.integrity_block_log2", integrity_block_log2=11),
    header("H11", "block_log2_31", finding="header.integrity_block_log2", integrity_block_log2=31),
    header("H11", "leaf_algorithm_3", finding="header.leaf_algorithm", leaf_algorithm=3),
    header("H11", "integrity_length", finding="header.integrity_length", leaf_algorithm=1),
    header("H12", "integrity_offset", integrity_offset=plus(64)),
    header("H13", "gap_before_commit_record", num_regions=0, region_index_offset=0, region_index_length=0),
    header("H14", "metadata_offset_odd", finding="header.metadata_offset", metadata_offset=257),
    header("H14", "connectivity_offset_odd", "connections", "header.connectivity_offset", connectivity_offset=plus(1)),
    header("H14", "directory_offset_odd", finding="header.directory_offset", directory_offset=plus(1)),
    header("H14", "region_index_offset_odd", finding="header.region_index_offset", region_index_offset=plus(1)),
    header("H15", "metadata_beyond", finding="header.metadata_offset", metadata_offset=1 << 40),
    header("H15", "metadata_in_header", finding="header.metadata_offset", metadata_offset=0),
    header("H15", "connectivity_over_metadata", "connections", "header.connectivity_offset", connectivity_offset=256),
    header("H15", "directory_beyond", finding="header.directory_offset", directory_offset=ALL - 63),
    header("H15", "region_index_before_directory", finding="header.region_index_offset", region_index_offset=256),
    header("H16", "absent_metadata_with_offset", finding="header.metadata_offset", metadata_length=0),
    header("H16", "absent_connectivity_with_offset", finding="header.connectivity_offset", connectivity_offset=256),
    header("H16", "absent_region_index_with_offset", "nothing", "header.region_index_offset", region_index_offset=640),
    header("H17", "connectivity_length_31", "connections", "header.connectivity_length", connectivity_length=31),
    header("H17", "directory_length_127", finding="header.directory_length", directory_length=127),
    header("H17", "region_index_length", finding="header.region_index_length", region_index_length=plus(48)),
    header("H18", "flag_compressed", flags=1),
    header("H18", "flag_lz4", "one_chunk", flags=plus(2)),
    header("H18", "flag_homeostatic", "pieces", flags=plus(-4)),
    header("H18", "flag_neuromodulators", "pieces", flags=plus(-8)),
    header("H18", "flag_sparse", "sparse", flags=plus(-16)),
    header("H18", "flag_mixed_precision", "pieces", flags=plus(-32)),
    header("H18", "flag_sparse_of_a_delta", "one.delta", flags=plus(-16)),
    header("H19", "total_neurons", "pieces", "header.total_neurons", total_neurons=plus(1)),
    header("H19", "total_synapses", "pieces", "header.total_synapses", total_synapses=plus(-1)),
    Case("H19", "total_synapses_past_2_64", "small.delta", synapses_past_2_64, "header.total_synapses"),
    header("H20", "base_checksum", finding="header.base_checksum", base_checksum=b"\1" + bytes(31)),
    header("H20", "base_step", finding="header.base_step", base_step=1),
    Case("H21", "container_cut_out", "small.delta", lambda e: e.sound[e.start :]),
    header("H22", "newer_minor_version", minor_version=1),
    header("H23", "compatible_features", compatible_features=1 << 4),
    Case("H24", "debris", "minimal", lambda e: e.sound + b"debris"),
    Case(
        "H25",
        "commit_record",
        "minimal",
        unsealed(lambda data, e: data.__setitem__(e.file.header.integrity_offset - 256 + 0x54, 9)),
    ),
    Case("H26", "closing_checksum", "minimal", flip(-1)),
    Case("H26", "closing_checksum_sha256", "checksum_sha256", flip(-1)),
    Case("H26", "closing_checksum_crc32", "checksum_crc32", flip(-1)),
    Case("H26", "closing_checksum_none", "checksum_none", flip(-1)),
    Case(
        "H27",
        "block_of_padding",
        "minimal",
        unsealed(lambda data, e: data.__setitem__(e.file.header.metadata_length + 256, 1)),
    ),
    Case("H28", "metadata_array", "minimal", json_byte("metadata", 0, ord("["))),
    Case("H29", "padding_between_sections", "minimal", behind_metadata),
    Case("H29", "padding_in_a_region", "pieces", padding_behind("dopamine")),
    Case("H29", "padding_in_a_kept_region", "appended", padding_behind("w")),
    Case("H29", "padding_in_kept_connectivity", "appended", padding_behind("0.weights")),
    Case("H29", "padding_in_the_directory", "minimal", behind_region_order),
    Case("H29", "unowned_name", "minimal", unowned_name),
    Case("H29", "unowned_side_data", "small.delta", unowned_side_data),
    Case("H30", "regions_overlap", "pieces", second_region_in_first),
]


def region(rule, name, finding=None, base="pieces", **fields):
    return Case(rule, name, base, edit("region", 0, **fields), finding)


def extension(rule, name, finding=None, base="pieces", **fields):
    return Case(rule, name, base, edit("extension", 0, **fields), finding)


def index(rule, name, base="pieces", finding=None, **fields):
    return Case(rule, name, base, edit("index", 0, **fields), finding)


def of_region(field):
    return f"region.{field}"


REGION = [
    index("R1", "index_name", region_name=b"cortez" + bytes(26)),
    index("R18", "index_name_behind_nul", region_name=b"cortex" + bytes(24) + b"x\0"),
    index("R2", "data_offset_odd", data_offset=plus(1)),
    index("R3", "data_offset_beyond", data_offset=ALL - 63),
    index("R4", "data_length_191", data_length=191),
    index("R5", "data_length_longer", data_length=plus(64)),
    region("R7", "neuron_type_3", of_region("neuron_type"), neuron_type=3),
    region("R7", "encoding_type_2", of_region("encoding_type"), encoding_type=2),
    region("R8", "encoding_type_csr", encoding_type=1),
    Case("R8", "encoding_type_dense", "sparse", edit("region", 0, encoding_type=0)),
    region("R9", "weights_beyond", of_region("weights_offset"), weights_offset=ALL - 7),
    region("R9", "config_in_headers", of_region("config_offset"), config_offset=191),
    region("R9", "homeostatic_first", of_region("homeostatic_offset"), homeostatic_offset=192),
    extension("R9", "dynamic_beyond", of_region("dynamic_state_offset"), dynamic_state_offset=ALL),
    extension("R9", "other_beyond", of_region("other_offset"), other_length=ALL),
    extension("R9", "metadata_first", of_region("region_metadata_offset"), region_metadata_offset=256),
    extension("R9", "oscillator_outside", of_region("oscillator_offset"), oscillator_offset=192),
    extension("R9", "neuromodulator_outside", of_region("neuromodulator_offset"), neuromodulator_offset=ALL),
    extension("R10", "extension_length", of_region("extension_length"), extension_length=64),
    extension("R10", "extension_zero_04", of_region("zero_04"), zero_04=1),
    extension("R10", "extension_zero_48", of_region("zero_48"), zero_48=bytes(55) + b"\1"),
    region("R11", "homeostatic_length_15", of_region("homeostatic_length"), homeostatic_length=15),
    extension("R11", "dynamic_length_31", of_region("dynamic_state_length"), dynamic_state_length=31),
    region("R12", "config_later", of_region("config_offset"), config_offset=plus(1)),
    region("R12", "absent_config_with_offset", of_region("config_offset"), config_length=0),
    region("R12", "weights_offset", of_region("weights_offset"), weights_offset=plus(1)),
    region("R12", "weights_length", of_region("weights_length"), weights_length=plus(-1)),
    region(
        "R12",
        "homeostatic_offset",
        of_region("homeostatic_offset"),
        homeostatic_offset=plus(1),
        homeostatic_length=plus(-1),
    ),
    region("R12", "homeostatic_length", of_region("homeostatic_length"), homeostatic_length=plus(-1)),
    extension("R12", "dynamic_state_length", of_region("dynamic_state_length"), dynamic_state_length=plus(-1)),
    extension("R12", "oscillator_offset", of_region("oscillator_offset"), oscillator_offset=0),
    extension("R12", "neuromodulator_offset", of_region("neuromodulator_offset"), neuromodulator_offset=0),
    extension("R12", "other_offset", of_region("other_offset"), other_offset=plus(1)),
    extension("R12", "other_length", of_region("other_length"), other_length=plus(-1)),
    extension("R13", "absent_metadata_with_offset", region_metadata_length=0),
    extension("R13", "metadata_place_odd", region_metadata_offset=plus(1), region_metadata_length=plus(-1)),
    Case("R14", "homeostatic_n_neurons", "pieces", edit("homeostatic", 0, n_neurons=5), of_region("n_neurons")),
    Case("R14", "homeostatic_flags", "pieces", edit("homeostatic", 0, flags=1), of_region("flags")),
    *[
        Case("R15", f"{field}", "pieces", edit("dynamic", 0, **{field: 2}), of_region(field))
        for field in (
            "has_region_state",
            "has_learning_state",
            "has_oscillators",
            "has_neuromodulators",
            "region_state_offset",
            "learning_state_offset",
        )
    ],
    Case("R16", "roles_out_of_order", "pieces", swapped_roles),
    Case("R17", "config_text", "pieces", json_byte("config", 1, ord(" ")), "region.config"),
    Case("R17", "region_metadata_text", "pieces", json_byte("region", 0, ord("[")), "region.metadata"),
]
