"""Tensors: directory entries, payload headers, chunks, and the bytes and indices themselves."""

import hashlib
import math
import struct
from itertools import pairwise

import chunk_codecs
import digests
import elements
import step_delta
import structures as s
from quantized import Quantized
from structures import Refused, align


class Tensor:
    """One tensor, checked down to its last byte. region is None in the connectivity section."""

    def __init__(self, file, entry, region, name):
        self.file = file
        self.entry = entry
        self.region = region
        self.name = name
        self.label = f"{region.name if region else ''}/{name}"
        entry.require("role", entry.role < len(s.ROLES), f"0 to {len(s.ROLES) - 1}")
        entry.require("encoding", entry.encoding < len(s.ENCODINGS), "0 to 8")
        entry.require("dtype", entry.dtype < len(elements.DTYPES), "0 to 28")
        entry.require("ndim", entry.ndim <= 8, f"0 to {len(s.ROLES) - 1}")
        entry.require_zero()
        entry.require("shape", not any(entry.shape[entry.ndim :]), "0 after ndim")
        self.encoding = s.ENCODINGS[entry.encoding]
        self.dtype, self.bits, self.alignment = elements.DTYPES[entry.dtype]
        self.shape = entry.shape[: entry.ndim]
        self.count = math.prod(self.shape)
        self.sparse = self.encoding in ("csr", "coo")
        self.stored_elements = entry.nnz if self.sparse else self.count
        delta = file.header.flags & 1 << 6 and entry.encoding >= 4
        entry.require("encoding", entry.encoding <= 3 or delta, "what needs no base")
        entry.require("flags", entry.flags <= int(self.sparse), "bit 0, csr and coo only")
        listed = self.sparse or self.encoding == "sparse_delta"
        entry.require("nnz", entry.nnz <= (self.count if listed else 0), self.count)
        self.side = self.read_change() if delta else None
        self.result_encoding = s.ENCODINGS[self.side.encoding] if self.side else self.encoding
        self.index_width = 8 if entry.flags & 1 else 4
        self.quantized = None
        if self.encoding == "quantized":
            self.quantized = Quantized(file, entry, self.dtype, self.count)
        self.place_arrays()
        self.check_place()
        self.chunks = self.read_chunks()
        self.check_header()
        self.data = self.logical_bytes()
        if self.data is not None:
            self.check_data()

    def read_change(self):
        """The side data of a tensor that is made from its base."""
        entry, directory = self.entry, self.file.directory
        entry.require("side_data_length", entry.side_data_length == 64, 64)
        entry.require(
            "side_data_offset",
            entry.side_data_offset + 64 <= directory.side_data_length,
            directory.side_data_length,
        )
        base = self.file.header.directory_offset + directory.side_data_offset
        side = s.DELTA_TENSOR.read(self.file.data, base + entry.side_data_offset)
        side.require_zero()
        side.require("encoding", side.encoding <= 2, "dense, csr or coo")
        side.require("flags", side.flags & ~2 <= int(side.encoding > 0), "bit 0, csr and coo only; bit 1")
        if side.flags & 2:
            side.require("crc32", side.crc32 == 0, "0, of brief side data")
            side.require("base_content_hash", side.base_content_hash == bytes(16), "zero, of brief side data")
        side.require("nnz", side.nnz <= (self.count if side.encoding else 0), self.count)
        if side.encoding:
            self.stored_elements = side.nnz
        if self.encoding == "same_as_base" and not side.flags & 2:
            same = side.content_hash == side.base_content_hash
            side.require("content_hash", same, side.base_content_hash.hex(" "))
        return side

    def place_list(self):
        """The end of the arrays of a sparse_delta."""
        entry, side = self.entry, self.side
        entry.require("dtype", self.bits % 8 == 0 and side.encoding == 0, "dense, no packed type")
        self.blocks = -(-self.count // 65536)
        positions = (self.blocks + 1) * 8
        self.values_at = align(positions + entry.nnz * 2, self.alignment)
        return self.values_at + entry.nnz * self.bits // 8

    def place_arrays(self):
        """Where the arrays of the logical bytes start; the last value is their end."""
        entry, width = self.entry, self.index_width
        if self.encoding == "dense":
            length = -(-self.count * self.bits // 8)
        elif self.quantized:
            length = self.quantized.length
        elif self.encoding == "sparse_delta":
            length = self.place_list()
        elif self.encoding == "low_rank_delta":
            entry.require("ndim", entry.ndim == 2, 2)
            entry.require("dtype", self.dtype in ("f16", "bf16", "f32", "f64"), "a float")
            entry.require("logical_length", entry.logical_length >= 64, "64 or more")
            length = entry.logical_length
        elif self.encoding == "step_delta":
            self.side.require(
                "encoding", self.dtype in step_delta.TYPES and self.side.encoding == 0, "dense, of few bits"
            )
            entry.require("logical_length", entry.logical_length >= 4, "4 or more")
            length = entry.logical_length
        elif self.side:
            length = self.side.logical_length if self.encoding == "xor_base" else 0
        else:
            entry.require("dtype", self.bits % 8 == 0, "no packed type in a sparse tensor")
            if self.encoding == "csr":
                entry.require("ndim", entry.ndim == 2, 2)
                self.indices_at = (self.shape[0] + 1) * width
                indices = entry.nnz
            else:
                entry.require("ndim", entry.ndim >= 1, "1 or more")
                self.indices_at = 0
                indices = entry.ndim * entry.nnz
            narrow = max(self.shape) < 1 << 32 and (self.encoding == "coo" or entry.nnz < 1 << 32)
            entry.require("flags", width == 8 or narrow, "u64 indices")
            self.indices_end = self.indices_at + indices * width
            self.values_at = align(self.indices_end, self.alignment)
            length = self.values_at + entry.nnz * self.bits // 8
        entry.require("logical_length", entry.logical_length == length, length)

    def check_place(self):
        entry, header = self.entry, self.file.header
        if self.region:
            begin, end = self.region.offset, self.region.end
        else:
            begin = header.connectivity_offset
            end = begin + header.connectivity_length
        multiple = 4096 if entry.logical_length >= 65536 else 64
        entry.require("stored_offset", entry.stored_offset % multiple == 0, f"a multiple of {multiple}")
        entry.require(
            "stored_offset",
            entry.stored_offset - 32 >= begin and entry.stored_offset + entry.stored_length <= end,
            f"within [{begin}, {end})",
        )
        if not self.quantized and not self.side:
            entry.require("side_data_length", entry.side_data_length == 0, 0)
            entry.require("side_data_offset", entry.side_data_offset == 0, 0)
        self.file.claim(entry.stored_offset - 32, 32, f"payload header of {self.label!r}")
        self.file.claim(entry.stored_offset, entry.stored_length, f"payload of {self.label!r}")

    def read_chunks(self):
        entry, directory = self.entry, self.file.directory
        total = directory.chunk_count
        entry.require("first_chunk", entry.first_chunk + entry.chunk_count <= total, total)
        if entry.chunk_count == 0:
            entry.require("first_chunk", entry.first_chunk == 0, 0)
            entry.require("stored_length", entry.stored_length == entry.logical_length, entry.logical_length)
            return []
        base = self.file.header.directory_offset + directory.chunks_offset
        chunks = [
            s.CHUNK_ENTRY.read(self.file.data, base + 24 * (entry.first_chunk + i)) for i in range(entry.chunk_count)
        ]
        at, left = entry.stored_offset, entry.logical_length
        for chunk in chunks:
            chunk.require("offset", chunk.offset == at, at)
            raw = min(chunks[0].raw_length, left)
            chunk.require("raw_length", chunk.raw_length == raw and raw > 0, raw)
            chunk.require("codec", chunk.codec < len(s.CODECS), "0 to 4")
            chunk.require("filter", chunk.filter < len(s.FILTERS), "0 to 5")
            chunk.require("stored_length", chunk.stored_length > 0, "1 or more")
            if chunk.codec == 0:
                chunk.require("stored_length", chunk.stored_length == raw, raw)
            chunk.require_zero()
            at, left = at + chunk.stored_length, left - raw
        entry.require("chunk_count", left == 0, f"{left} more logical bytes")
        stored = at - entry.stored_offset
        entry.require("stored_length", entry.stored_length == stored, stored)
        return chunks

    def check_header(self):
        entry = self.entry
        at = entry.stored_offset - 32
        if self.encoding == "csr":
            header = s.CSR_HEADER.read(self.file.data, at)
            header.require("reserved", not any(header.reserved), "zero")
            header.require("n_rows", header.n_rows == self.shape[0], self.shape[0])
            header.require("n_cols", header.n_cols == self.shape[1], self.shape[1])
            header.require("nnz", header.nnz == entry.nnz, entry.nnz)
        else:
            header = s.TENSOR_HEADER.read(self.file.data, at)
            header.require("ndim", header.ndim == entry.ndim, entry.ndim)
            mark = {"coo": 1, "quantized": 2}.get(self.encoding, 0)
            header.require("reserved", header.reserved == mark, mark)
            folded = min(math.prod(self.shape[2:]), (1 << 64) - 1)
            shape = (*(*self.shape[:2], 1, 1)[:2], folded)
            header.require("shape", header.shape == shape, shape)
        header.require("dtype", header.dtype == entry.dtype, entry.dtype)
        header.require("checksum", header.checksum == entry.crc32, entry.crc32)

    def logical_bytes(self):
        """None where a package that a codec needs is absent."""
        data, entry = self.file.data, self.entry
        if not self.chunks:
            return data[entry.stored_offset : entry.stored_offset + entry.stored_length]
        pieces = []
        for chunk in self.chunks:
            stored = data[chunk.offset : chunk.offset + chunk.stored_length]
            crc = digests.crc32(stored)
            chunk.require("crc32", chunk.crc32 == crc, crc, "IntegrityError")
            codec = s.CODECS[chunk.codec]
            try:
                piece = digests.decode_chunk(codec, stored, chunk.raw_length)
            except ValueError as error:
                chunk.require("codec", False, f"a frame of {chunk.raw_length} bytes: {error}")
            if piece is not None:
                piece = chunk_codecs.undo_filter(s.FILTERS[chunk.filter], bytes(piece))
            pieces.append(piece)
        return None if None in pieces else memoryview(b"".join(pieces))

    def check_data(self):
        entry = self.entry
        crc = digests.crc32(self.data)
        entry.require("crc32", entry.crc32 == crc, crc, "IntegrityError")
        digest = digests.content_hash(self.data)
        if digest is not None:
            same = entry.content_hash == digest
            entry.require("content_hash", same, digest.hex(" "), "IntegrityError")
        values = self.data
        if self.encoding == "csr":
            self.check_csr()
        elif self.encoding == "coo":
            self.check_coo()
        elif self.quantized:
            self.restored = self.quantized.restore(self.data)
            return
        elif self.encoding == "step_delta":
            step_delta.StepDelta(self.dtype, self.count, self.data)
        elif self.encoding == "sparse_delta":
            self.indices_end = (self.blocks + 1) * 8 + 2 * entry.nnz
        elif self.encoding in ("dense", "xor_base"):
            if self.count and elements.unused_bits(self.dtype, self.data, self.count):
                self.refuse("elements", "bits behind the last element", "zero")
        if self.side and self.encoding != "sparse_delta":
            return  # what comes out is looked at where the base is: chain.py
        if self.encoding != "dense":
            values = self.data[self.values_at :]
            if any(self.data[self.indices_end : self.values_at]):
                self.refuse("values", "non-zero padding before them", "zero")
        if elements.has_illegal_codes(self.dtype, bytes(values)):
            self.refuse("elements", "codes that stand for nothing", f"elements of {self.dtype}")

    def refuse(self, field, value, bound):
        place = self.entry.stored_offset
        raise Refused("FormatError", f"payload of {self.label!r}", field, place, value, bound)

    def index_array(self, start, end):
        code = "Q" if self.index_width == 8 else "I"
        return struct.unpack(f"<{(end - start) // self.index_width}{code}", self.data[start:end])

    def check_csr(self):
        rows = self.index_array(0, self.indices_at)
        columns = self.index_array(self.indices_at, self.indices_end)
        ends = (rows[0], rows[-1])
        if ends != (0, self.entry.nnz) or any(a > b for a, b in pairwise(rows)):
            self.refuse("row_pointers", "another sequence", f"ascending from 0 to {self.entry.nnz}")
        for row, (begin, end) in enumerate(pairwise(rows)):
            run = columns[begin:end]
            if any(a >= b for a, b in pairwise(run)) or (run and run[-1] >= self.shape[1]):
                bound = f"ascending, below {self.shape[1]}"
                self.refuse("column_indices", f"row {row}: {run}", bound)

    def check_coo(self):
        flat, nnz = self.index_array(0, self.indices_end), self.entry.nnz
        before = None
        runs = [flat[d * nnz : (d + 1) * nnz] for d in range(self.entry.ndim)]
        for place in zip(*runs, strict=True):
            if any(index >= extent for index, extent in zip(place, self.shape, strict=True)):
                self.refuse("indices", place, f"inside {self.shape}")
            if before is not None and place <= before:
                self.refuse("indices", place, f"behind {before}")
            before = place

    def sha256(self):
        return None if self.data is None else hashlib.sha256(self.data).hexdigest()

    def contents(self):
        """The elements, and the indices of a sparse tensor, as JSON can hold them."""
        if self.encoding in ("dense", "quantized"):
            return {"values": self.elements_from(0, self.count)}
        indices = list(self.index_array(self.indices_at, self.indices_end))
        values = self.elements_from(self.values_at, self.entry.nnz)
        if self.encoding == "csr":
            rows = list(self.index_array(0, self.indices_at))
            return {"row_pointers": rows, "column_indices": indices, "values": values}
        nnz = self.entry.nnz
        return {
            "indices": [indices[d * nnz : (d + 1) * nnz] for d in range(self.entry.ndim)],
            "values": values,
        }

    def elements_from(self, start, count):
        data = self.restored if self.quantized else self.data
        numbers = elements.values(self.dtype, bytes(data[start:]), count)

        def plain(number):
            if isinstance(number, complex):
                return [plain(number.real), plain(number.imag)]
            special = isinstance(number, float) and not math.isfinite(number)
            return str(number) if special else number

        return [plain(number) for number in numbers]
