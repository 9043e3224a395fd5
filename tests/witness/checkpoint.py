"""A whole .thalia 1.0 file, checked as docs/format/verifying.md, "Verifier's checklist", says.

Stops at the first thing that is wrong: Refused names it.
"""

import json

import digests
import structures as s
from payloads import Tensor
from regions import Region
from structures import Refused, align


class Checkpoint:
    def __init__(self, data):
        self.data = data
        self.claims = []  # (start, end, what) of every byte that belongs to something
        self.header = self.read_header()
        self.metadata = None
        if self.header.metadata_length:
            self.metadata = self.json_text("metadata", self.header.metadata_offset, self.header.metadata_length)
        self.check_integrity()
        self.read_directory()
        self.read_regions()
        self.read_tensors()
        self.read_connections()
        for region in self.regions:
            region.check_pieces([t for t in self.tensors if t.region is region])
        self.check_totals()
        self.check_claims()

    def claim(self, start, length, what):
        self.claims.append((start, start + length, what))

    def json_text(self, section, offset, length):
        self.claim(offset, length, f"{section} JSON")

        def refuse_constant(name):
            raise ValueError(f"{name} is no JSON number")

        text = bytes(self.data[offset : offset + length])
        try:
            # Objects become tuples, so that no member is lost that has another's name.
            value = json.loads(
                text.decode("utf-8"),
                parse_constant=refuse_constant,
                parse_int=str,
                parse_float=str,
                object_pairs_hook=tuple,
            )
            json.dumps(value, ensure_ascii=False).encode("utf-8")  # ValueError: half a pair
        except (ValueError, RecursionError) as error:
            raise Refused("FormatError", section, "JSON", offset, error, "a JSON object") from error
        if not isinstance(value, tuple):
            raise Refused("FormatError", section, "JSON", offset, type(value).__name__, "an object")
        return text.decode("utf-8")

    def read_header(self):
        header = s.HEADER.read(self.data, 0)
        header.require("magic", header.magic == b"THAL", "54 48 41 4c")
        header.require("major_version", header.major_version == 1, 1, "UnsupportedError")
        crc = digests.crc32_without(self.data[:256], s.HEADER.offsets["header_crc32"])
        header.require("header_crc32", header.header_crc32 == crc, crc, "IntegrityError")
        header.require("incompatible_features", header.incompatible_features == 0, 0, "UnsupportedError")
        header.require("flags", header.flags < 1 << 7, "bits 7 to 15 zero")
        header.require_zero()
        header.require("checksum_type", header.checksum_type <= 3, "0 to 3")
        header.require("generation", header.generation >= 1, "1 or more")
        tree = header.checksum_type == 3
        header.require(
            "integrity_block_log2",
            12 <= header.integrity_block_log2 <= 30 if tree else header.integrity_block_log2 == 0,
            "12 to 30 for a block tree, else 0",
        )
        header.require(
            "leaf_algorithm",
            header.leaf_algorithm in (1, 2) if tree else header.leaf_algorithm == 0,
            "1 or 2 for a block tree, else 0",
        )
        self.leaf_algorithm = s.LEAF_ALGORITHMS[header.leaf_algorithm]
        self.check_extents(header, tree)
        if not header.flags & 1 << 6:
            header.require("base_checksum", not any(header.base_checksum), "zero: no delta")
            header.require("base_step", header.base_step == 0, "0: no delta")
        return header

    def check_extents(self, header, tree):
        header.require("file_length", header.file_length <= len(self.data), len(self.data))
        end = header.integrity_offset + header.integrity_length + 32
        header.require("file_length", header.file_length == end, end)
        header.require(
            "integrity_offset",
            header.integrity_offset % 64 == 0 and header.integrity_offset >= 640,
            "a multiple of 64, at least 640",
        )
        blocks = -(-header.integrity_offset >> header.integrity_block_log2) if tree else 0
        expected = blocks * digests.leaf_length(self.leaf_algorithm)
        header.require("integrity_length", header.integrity_length == expected, expected)
        header.require("num_regions", header.num_regions < (1 << 32) - 1, "at most 2^32 - 2")
        indexes = 48 * header.num_regions
        header.require("region_index_length", header.region_index_length == indexes, indexes)
        header.require("directory_length", header.directory_length >= 128, "128 or more")

        record = header.integrity_offset - 256
        sections = ("metadata", "connectivity", "directory", "region_index")
        least = {"metadata": 0, "connectivity": 32, "directory": 128, "region_index": 0}
        for name in sections:
            offset = getattr(header, f"{name}_offset")
            length = getattr(header, f"{name}_length")
            if name != "directory" and length == 0:
                header.require(f"{name}_offset", offset == 0, "0: no such section")
                continue
            below = record if name in ("directory", "region_index") else header.directory_offset
            above = 256
            if name == "region_index":
                above = header.directory_offset + header.directory_length
            header.require(
                f"{name}_offset",
                offset % 64 == 0 and offset >= above and offset + length <= below,
                f"a multiple of 64, the section within [{above}, {below})",
            )
            header.require(f"{name}_length", length >= least[name], least[name])
        last = "region_index" if header.region_index_length else "directory"
        end = getattr(header, f"{last}_offset") + getattr(header, f"{last}_length")
        header.require("integrity_offset", record == align(end, 64), align(end, 64) + 256)

    def check_integrity(self):
        header = self.header
        self.claim(0, 256, "header")
        self.claim(header.integrity_offset - 256, 256, "commit record")
        self.claim(header.integrity_offset, header.integrity_length, "integrity table")
        self.claim(header.file_length - 32, 32, "closing checksum")
        copy = bytes(self.data[header.integrity_offset - 256 : header.integrity_offset])
        if copy != bytes(self.data[:256]):
            raise Refused(
                "IntegrityError",
                "header",
                "commit record",
                header.integrity_offset - 256,
                "another header",
                "a copy of the header",
            )
        expected = digests.closing_checksum(header, self.data, self.leaf_algorithm)
        closing = bytes(self.data[header.file_length - 32 : header.file_length])
        if closing != expected:
            raise Refused(
                "IntegrityError",
                "checksum",
                "closing checksum",
                header.file_length - 32,
                closing.hex(),
                expected.hex(),
            )
        if header.checksum_type == 3:
            for block in digests.damaged_blocks(header, self.data, self.leaf_algorithm):
                raise Refused(
                    "IntegrityError",
                    "integrity",
                    f"leaf {block}",
                    block << header.integrity_block_log2,
                    "other bytes",
                    "those that were written",
                )

    def read_directory(self):
        header = self.header
        base = header.directory_offset
        self.claim(base, header.directory_length, "directory")
        directory = s.DIRECTORY_HEADER.read(self.data, base)
        crc = digests.crc32_without(self.data[base : base + 128], s.DIRECTORY_HEADER.offsets["directory_crc32"])
        same = directory.directory_crc32 == crc
        directory.require("directory_crc32", same, crc, "IntegrityError")
        directory.require("magic", directory.magic == b"TDIR", "54 44 49 52")
        directory.require("directory_version", directory.directory_version == 1, 1)
        directory.require_zero()
        regions = header.num_regions + (header.connectivity_length > 0)
        directory.require("region_count", directory.region_count == regions, regions)
        end = 128
        for name, length in (
            ("regions", 32 * directory.region_count),
            ("region_order", 4 * directory.region_count),
            ("tensors", 160 * directory.tensor_count),
            ("chunks", 24 * directory.chunk_count),
            ("names", directory.names_length),
            ("side_data", directory.side_data_length),
        ):
            start = align(end, 8)
            field = f"{name}_offset"
            directory.require(field, getattr(directory, field) == start, start)
            if any(self.data[base + end : base + start]):
                raise Refused("FormatError", "padding", name, base + end, "non-zero bytes", "zero")
            end = start + length
            directory.require(field, end <= header.directory_length, header.directory_length)
        directory.require("side_data_length", end == header.directory_length, "end of directory")
        self.directory = directory

    def name_of(self, record):
        directory = self.directory
        end = record.name_offset + record.name_length
        record.require("name_offset", end <= directory.names_length, directory.names_length)
        base = self.header.directory_offset + directory.names_offset
        name = bytes(self.data[base + record.name_offset : base + end])
        try:
            name.decode("utf-8")
        except UnicodeDecodeError as error:
            record.require("name_offset", False, f"valid UTF-8: {error}")
        return name

    def read_regions(self):
        header, directory = self.header, self.directory
        self.claim(header.region_index_offset, header.region_index_length, "region index")
        base = header.directory_offset + directory.regions_offset
        self.records = [s.DIRECTORY_REGION.read(self.data, base + 32 * k) for k in range(directory.region_count)]
        self.regions = []
        names = []
        first = 0
        for k, record in enumerate(self.records):
            names.append(self.name_of(record))
            connectivity = k == header.num_regions
            record.require("flags", record.flags == connectivity, int(connectivity))
            named = record.name_length > 0
            record.require("name_length", named != connectivity, "empty: connectivity only")
            record.require("name_offset", b"\0" not in names[k], "no U+0000")
            record.require("first_tensor", record.first_tensor == first, first)
            first += record.tensor_count
            record.require("tensor_count", first <= directory.tensor_count, directory.tensor_count)
            if not connectivity:
                self.regions.append(Region(self, k, names[k].decode("utf-8")))
        directory.require("tensor_count", first == directory.tensor_count, first)
        order_at = header.directory_offset + directory.region_order_offset
        stored = bytes(self.data[order_at : order_at + 4 * len(names)])
        order = sorted(range(len(names)), key=names.__getitem__)
        if stored != b"".join(k.to_bytes(4, "little") for k in order):
            raise Refused("FormatError", "directory", "region_order", order_at, stored.hex(" "), str(order))
        if len(set(names)) != len(names):
            raise Refused("FormatError", "directory", "region name", base, "a name twice", "unique")

    def read_tensors(self):
        base = self.header.directory_offset + self.directory.tensors_offset
        self.tensors = []
        for k, record in enumerate(self.records):
            region = self.regions[k] if k < len(self.regions) else None
            before = None
            for i in range(record.first_tensor, record.first_tensor + record.tensor_count):
                entry = s.TENSOR_ENTRY.read(self.data, base + 160 * i)
                name = self.name_of(entry)
                entry.require("name_offset", before is None or before < name, f"above {before!r}")
                before = name
                self.tensors.append(Tensor(self, entry, region, name.decode("utf-8")))
            own = self.tensors[record.first_tensor :]
            for field, total in (
                ("logical_bytes", sum(t.entry.logical_length for t in own)),
                ("stored_bytes", sum(t.entry.stored_length for t in own)),
            ):
                record.require(field, getattr(record, field) == total, total)

    def read_connections(self):
        self.connections = []
        base = self.header.connectivity_offset
        if base == 0:
            return
        header = s.CONNECTIVITY_HEADER.read(self.data, base)
        header.require_zero()
        count = header.num_connections
        header.require(
            "num_connections",
            count >= 1 and 32 + 96 * count <= self.header.connectivity_length,
            f"1 or more, within {self.header.connectivity_length} bytes",
        )
        self.claim(base, 32 + 96 * count, "connectivity")
        full_names = {region.short_name: region.name for region in self.regions}
        matrices = {t.name: t for t in self.tensors if t.region is None}
        ends = [base + 32 + 96 * count]
        for k in range(count):
            entry = s.CONNECTION_ENTRY.read(self.data, base + 32 + 96 * k)
            for field in ("source_region", "target_region"):
                entry.require(field, getattr(entry, field) in full_names, "a region's short name")
            for kind, role, field in (("weights", 0, "weight"), ("delays", 8, "delay")):
                tensor = matrices.pop(f"{k}.{kind}", None)
                offset = getattr(entry, f"{field}_offset")
                length = getattr(entry, f"{field}_length")
                if tensor is None:
                    entry.require(f"{field}_offset", kind == "delays", "a weight matrix")
                    absent = (offset, length) == (0, 0)
                    entry.require(f"{field}_offset", absent, "0: no such tensor")
                    continue
                start, stored = tensor.entry.stored_offset - 32, tensor.entry.stored_length + 32
                entry.require(f"{field}_offset", base + offset == start, start - base)
                entry.require(f"{field}_length", length == stored, stored)
                tensor.entry.require("role", tensor.entry.role == role, role)
                ends.append(start + stored)
            self.connections.append((full_names[entry.source_region], full_names[entry.target_region]))
            entry.require("target_region", self.connections.count(self.connections[-1]) == 1, "one connection")
        for tensor in matrices.values():
            tensor.entry.require("name_offset", False, "the name of a connection's matrix")
        length = max(ends) - base
        same = length == self.header.connectivity_length
        self.header.require("connectivity_length", same, length)

    def derived_flags(self):
        """Bits 0 to 5 of the header's flags, as the directory has them."""
        roles = {tensor.entry.role for tensor in self.tensors}
        dtypes = {tensor.dtype for tensor in self.tensors}
        chunks = [chunk for tensor in self.tensors for chunk in tensor.chunks]
        return (
            (len(chunks) > 0)
            | any(s.CODECS[chunk.codec] == "lz4" for chunk in chunks) << 1
            | (1 in roles) << 2
            | (5 in roles) << 3
            | any(t.result_encoding in ("csr", "coo") for t in self.tensors) << 4
            | ("f32" in dtypes and not dtypes.isdisjoint(("f16", "bf16"))) << 5
        )

    def check_totals(self):
        header = self.header
        flags = self.derived_flags()
        header.require("flags", header.flags & 0x3F == flags, f"{flags:#x} in bits 0 to 5")
        neurons = sum(region.header.n_neurons for region in self.regions)
        header.require("total_neurons", header.total_neurons == neurons, neurons)
        synapses = sum(t.stored_elements for t in self.tensors if t.entry.role == 0)
        header.require("total_synapses", header.total_synapses == synapses, synapses)

    def check_claims(self):
        """No byte belongs to two things, and in generation 1 those that belong to none are zero."""
        end, owner = 0, "start of file"
        for start, stop, what in sorted(self.claims):
            if start == stop:
                continue
            if start < end:
                bound = f"behind {owner}, from {end} on"
                raise Refused("FormatError", "file", what, start, start, bound)
            self.check_gap(end, start)
            end, owner = stop, what
        self.check_directory_claims()

    def check_gap(self, begin, end):
        """In later generations only inside the sections, and from the directory on."""
        if self.header.generation == 1:
            self.require_zero(begin, end)
            return
        header = self.header
        sections = [(region.offset, region.end) for region in self.regions]
        at = header.connectivity_offset
        sections += [(at, at + header.connectivity_length)]
        sections += [(header.directory_offset, header.file_length)]
        for start, stop in sections:
            self.require_zero(max(begin, start), min(end, stop))

    def require_zero(self, begin, end):
        gap = bytes(self.data[begin : max(begin, end)])
        if gap.count(0) != len(gap):
            bad = begin + len(gap) - len(gap.lstrip(b"\0"))
            raise Refused("FormatError", "padding", "byte", bad, self.data[bad], 0)

    def check_directory_claims(self):
        """Chunks, names and side data that no entry owns are zero."""
        base, directory = self.header.directory_offset, self.directory
        owned = [
            (0, 128 + 36 * directory.region_count),
            (directory.tensors_offset, 160 * directory.tensor_count),
        ]
        for record in (*self.records, *(tensor.entry for tensor in self.tensors)):
            owned.append((directory.names_offset + record.name_offset, record.name_length))
        for tensor in self.tensors:
            entry = tensor.entry
            owned.append((directory.chunks_offset + 24 * entry.first_chunk, 24 * entry.chunk_count))
            side = directory.side_data_offset + entry.side_data_offset
            owned.append((side, entry.side_data_length))
        end = 0
        for start, length in sorted(owned):
            if length:
                self.require_zero(base + end, base + start)
                end = max(end, start + length)
        self.require_zero(base + end, base + self.header.directory_length)
