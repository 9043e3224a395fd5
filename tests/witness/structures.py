"""The structures of a .thalia 1.0 file, written down from the tables of docs/format/format.md."""

import re
import struct


class Refused(Exception):
    """The file breaks a rule; the text names class, section, field, offset, value and bound."""

    def __init__(self, kind, section, field, offset, value, bound):
        super().__init__(f"{kind}: {section}.{field} at {offset}: got {value}, expected {bound}")
        self.kind = kind
        self.section = section
        self.field = field


class Record:
    """One structure read from the file: its fields as attributes, bytes for u8[n]."""

    def __init__(self, layout, values, offset):
        self.layout = layout
        self.offset = self.place = offset  # place: also where a field is called offset
        self.__dict__.update(values)

    def require(self, field, holds, bound, kind="FormatError"):
        if not holds:
            value = getattr(self, field)
            if isinstance(value, bytes):
                value = value.hex(" ")
            offset = self.place + self.layout.offsets[field]
            raise Refused(kind, self.layout.section, field, offset, value, bound)

    def require_zero(self):
        """The fields called zero_…, or an array of them, hold zero."""
        for field in self.layout.offsets:
            if field.startswith("zero_"):
                value = getattr(self, field)
                zero = bytes(len(value)) if isinstance(value, bytes) else 0
                self.require(field, value == zero, "zero")


class Layout:
    """A packed little-endian structure. fields: "u32 name", "u8[32] name", "u64[3] name"."""

    def __init__(self, section, *fields):
        self.section = section
        self.offsets = {}
        self.parts = []
        at = 0
        for text in fields:
            kind, count, name = re.fullmatch(r"u(\d+)(?:\[(\d+)\])? (\w+)", text).groups()
            code = {"8": "B", "16": "H", "32": "I", "64": "Q"}[kind]
            if kind == "8" and count:
                code = "s"
            self.offsets[name] = at
            part = struct.Struct(f"<{count or ''}{code}")
            self.parts.append((name, part, code == "s" or not count))
            at += part.size
        self.size = at

    def read(self, data, offset):
        if offset + self.size > len(data):
            end = offset + self.size
            raise Refused("FormatError", self.section, "end", offset, len(data), f"{end} or more")
        values = {}
        for name, part, single in self.parts:
            unpacked = part.unpack_from(data, offset + self.offsets[name])
            values[name] = unpacked[0] if single else unpacked
        return Record(self, values, offset)


HEADER = Layout(
    "header",
    "u8[4] magic",
    "u16 major_version",
    "u16 minor_version",
    "u16 patch_version",
    "u16 flags",
    "u64 timestamp",
    "u64 metadata_offset",
    "u64 metadata_length",
    "u64 region_index_offset",
    "u64 region_index_length",
    "u64 connectivity_offset",
    "u64 connectivity_length",
    "u64 total_neurons",
    "u64 total_synapses",
    "u64 training_steps",
    "u32 num_regions",
    "u32 checksum_type",
    "u32 header_crc32",
    "u64 file_length",
    "u64 directory_offset",
    "u64 directory_length",
    "u64 integrity_offset",
    "u64 integrity_length",
    "u64 generation",
    "u8[16] file_uuid",
    "u8[32] base_checksum",
    "u64 base_step",
    "u8 integrity_block_log2",
    "u8 leaf_algorithm",
    "u8[2] zero_d2",
    "u32 incompatible_features",
    "u32 compatible_features",
    "u8[36] zero_dc",
)
REGION_INDEX_ENTRY = Layout("region_index", "u8[32] region_name", "u64 data_offset", "u64 data_length")
REGION_HEADER = Layout(
    "region",
    "u32 n_neurons",
    "u32 n_inputs",
    "u32 neuron_type",
    "u32 encoding_type",
    "u64 config_offset",
    "u64 config_length",
    "u64 weights_offset",
    "u64 weights_length",
    "u64 homeostatic_offset",
    "u64 homeostatic_length",
)
REGION_EXTENSION = Layout(
    "region",
    "u32 extension_length",
    "u32 zero_04",
    "u64 dynamic_state_offset",
    "u64 dynamic_state_length",
    "u64 oscillator_offset",
    "u64 neuromodulator_offset",
    "u64 region_metadata_offset",
    "u64 region_metadata_length",
    "u64 other_offset",
    "u64 other_length",
    "u8[56] zero_48",
)
HOMEOSTATIC_HEADER = Layout("region", "u32 n_neurons", "u32 flags", "u64 timestamp_updated")
DYNAMIC_STATE_HEADER = Layout(
    "region",
    "u32 has_region_state",
    "u32 has_learning_state",
    "u32 has_oscillators",
    "u32 has_neuromodulators",
    "u64 region_state_offset",
    "u64 learning_state_offset",
)
TENSOR_HEADER = Layout("payload", "u8 dtype", "u8 ndim", "u16 reserved", "u64[3] shape", "u32 checksum")
CSR_HEADER = Layout("payload", "u8 dtype", "u8[3] reserved", "u64 n_rows", "u64 n_cols", "u64 nnz", "u32 checksum")
CHUNK_ENTRY = Layout(
    "directory",
    "u64 offset",
    "u32 stored_length",
    "u32 raw_length",
    "u32 crc32",
    "u8 codec",
    "u8 filter",
    "u16 zero_16",
)
CONNECTIVITY_HEADER = Layout("connectivity", "u32 num_connections", "u32 zero_04", "u8[24] zero_08")
CONNECTION_ENTRY = Layout(
    "connectivity",
    "u8[32] source_region",
    "u8[32] target_region",
    "u64 weight_offset",
    "u64 weight_length",
    "u64 delay_offset",
    "u64 delay_length",
)
DIRECTORY_HEADER = Layout(
    "directory",
    "u8[4] magic",
    "u32 directory_version",
    "u32 region_count",
    "u32 tensor_count",
    "u32 chunk_count",
    "u32 directory_crc32",
    "u64 regions_offset",
    "u64 region_order_offset",
    "u64 tensors_offset",
    "u64 chunks_offset",
    "u64 names_offset",
    "u64 names_length",
    "u64 side_data_offset",
    "u64 side_data_length",
    "u8[40] zero_58",
)
DIRECTORY_REGION = Layout(
    "directory",
    "u32 name_offset",
    "u16 name_length",
    "u16 flags",
    "u32 first_tensor",
    "u32 tensor_count",
    "u64 logical_bytes",
    "u64 stored_bytes",
)
TENSOR_ENTRY = Layout(
    "directory",
    "u32 name_offset",
    "u16 name_length",
    "u8 role",
    "u8 encoding",
    "u8 dtype",
    "u8 ndim",
    "u16 flags",
    "u32 crc32",
    "u64 logical_length",
    "u64 stored_offset",
    "u64 stored_length",
    "u32 first_chunk",
    "u32 chunk_count",
    "u64 nnz",
    "u8[16] content_hash",
    "u64 side_data_offset",
    "u32 side_data_length",
    "u32 zero_54",
    "u64[8] shape",
    "u8[8] zero_98",
)
QUANTIZED_TENSOR = Layout(
    "directory",
    "u8 bits",
    "u8 zero_01",
    "u16 lossy_generation",
    "u16 max_lossy_generations",
    "u16 zero_06",
    "u32 group_size",
    "u32 crc32",
    "u64 code_length",
    "u64 max_error",
    "u64 rms_error",
    "u8[16] content_hash",
    "u8[8] zero_38",
)

DELTA_HEADER = Layout(
    "delta",
    "u8[5] magic",
    "u32 delta_version",
    "u8[32] base_checkpoint_hash",
    "u64 base_step",
    "u64 current_step",
    "u8[7] zero_39",
)
DELTA_REFERENCE = Layout(
    "delta",
    "u32 reference_length",
    "u32 crc32",
    "u64 container_offset",
    "u64 base_length",
    "u64 base_generation",
    "u8[16] base_uuid",
    "u32 depth",
    "u32 path_length",
    "u8[8] zero_38",
)
DELTA_TENSOR = Layout(
    "directory",
    "u8 encoding",
    "u8 flags",
    "u8[2] zero_02",
    "u32 crc32",
    "u64 logical_length",
    "u64 nnz",
    "u8[16] content_hash",
    "u8[16] base_content_hash",
    "u8[8] zero_38",
)
LOW_RANK_HEADER = Layout(
    "payload",
    "u32 rank",
    "u16 lossy_generation",
    "u16 max_lossy_generations",
    "u64 code_length",
    "u64 max_error",
    "u64 rms_error",
    "u64 relative_error",
    "u8[24] zero_28",
)
STEP_DELTA_HEADER = Layout("payload", "u8 table", "u8 first_class", "u8 lanes_log2", "u8 chunk_log2")
SKIPPABLE_HEADER = Layout("wrapper", "u8[4] magic", "u32 length")
SEEK_ENTRY = Layout("wrapper", "u32 stored_length", "u32 content_length")
SEEK_FOOTER = Layout("wrapper", "u32 frame_count", "u8 descriptor", "u8[4] magic")
PACKED_HEADER = Layout("wrapper", "u8[4] magic", "u32 packed_version", "u32 contents_length", "u32 frame_length")
META_HEADER = Layout(
    "side_file",
    "u8[4] magic",
    "u32 meta_version",
    "u32 meta_crc32",
    "u32 extent_count",
    "u64 source_length",
    "u64 meta_length",
    "u8[32] source_checksum",
)
META_EXTENT = Layout("side_file", "u64 offset", "u64 length")

CHECKSUM_TYPES = ("none", "sha256", "crc32", "block_tree")
LEAF_ALGORITHMS = {0: None, 1: "xxh3_128", 2: "sha256"}
NEURON_TYPES = ("lif", "conductance_lif", "none")
ENCODINGS = (
    "dense",
    "csr",
    "coo",
    "quantized",
    "same_as_base",
    "xor_base",
    "sparse_delta",
    "low_rank_delta",
    "step_delta",
)
ROLES = (
    "weights",
    "homeostatic",
    "region_state",
    "learning_state",
    "oscillator",
    "neuromodulator",
    "optimizer",
    "buffer",
    "other",
    "bias",
    "normalization",
    "embedding",
)
CODECS = ("none", "zstd", "lz4", "plane_entropy", "packed_exponents")
FILTERS = (
    "none",
    "byte_planes_2",
    "byte_planes_4",
    "byte_planes_8",
    "difference_planes_4",
    "difference_planes_8",
)


def align(value, multiple):
    return -(-value // multiple) * multiple
