"""Changes to a valid vector by the names of docs/format/format.md, sealed again so that one rule is broken
and no other."""

import struct

import digests
import structures as s
from chain import Link
from reseal import reseal

from checkpoint import Checkpoint


class Editor:
    """The bytes of a file, or of a delta with its container. Places are those before any change."""

    def __init__(self, sound):
        self.data = bytearray(sound)
        self.start = 0
        if bytes(sound[:4]) == b"\xce\x94TH":
            self.start = struct.unpack_from("<Q", sound, 64 + 8)[0]
        self.sound = bytes(sound)
        self.file = Checkpoint(memoryview(self.sound)[self.start :])

    def put(self, layout, at, **fields):
        """value, or a function of the old one."""
        names = list(layout.offsets)
        for name, value in fields.items():
            begin = layout.offsets[name]
            after = names.index(name) + 1
            end = layout.offsets[names[after]] if after < len(names) else layout.size
            place = slice(self.start + at + begin, self.start + at + end)
            old = bytes(self.data[place])
            if callable(value):
                value = value(int.from_bytes(old, "little"))
            if isinstance(value, int):
                value = (value % (1 << 8 * len(old))).to_bytes(len(old), "little")
            assert len(value) == len(old), name
            self.data[place] = value

    def header(self, **fields):
        self.put(s.HEADER, 0, **fields)

    def directory(self, **fields):
        self.put(s.DIRECTORY_HEADER, self.file.header.directory_offset, **fields)

    def record(self, number, **fields):
        self.put(s.DIRECTORY_REGION, self.file.records[number].offset, **fields)

    def index(self, number, **fields):
        self.put(s.REGION_INDEX_ENTRY, self.file.regions[number].entry.offset, **fields)

    def region(self, number, **fields):
        self.put(s.REGION_HEADER, self.file.regions[number].header.offset, **fields)

    def extension(self, number, **fields):
        self.put(s.REGION_EXTENSION, self.file.regions[number].extension.offset, **fields)

    def homeostatic(self, number, **fields):
        region = self.file.regions[number]
        self.put(s.HOMEOSTATIC_HEADER, region.offset + region.header.homeostatic_offset, **fields)

    def dynamic(self, number, **fields):
        region = self.file.regions[number]
        at = region.offset + region.extension.dynamic_state_offset
        self.put(s.DYNAMIC_STATE_HEADER, at, **fields)

    def connectivity(self, **fields):
        self.put(s.CONNECTIVITY_HEADER, self.file.header.connectivity_offset, **fields)

    def connection(self, number, **fields):
        at = self.file.header.connectivity_offset + 32 + 96 * number
        self.put(s.CONNECTION_ENTRY, at, **fields)

    def tensor(self, name):
        return next(t for t in self.file.tensors if t.name == name)

    def entry(self, name, **fields):
        self.put(s.TENSOR_ENTRY, self.tensor(name).entry.offset, **fields)

    def shape(self, name, *extents):
        self.entry(name, shape=struct.pack("<8Q", *extents, *[0] * (8 - len(extents))))

    def payload_header(self, name, **fields):
        tensor = self.tensor(name)
        layout = s.CSR_HEADER if tensor.encoding == "csr" else s.TENSOR_HEADER
        self.put(layout, tensor.entry.stored_offset - 32, **fields)

    def chunk(self, name, number, **fields):
        self.put(s.CHUNK_ENTRY, self.tensor(name).chunks[number].place, **fields)

    def side(self, name, **fields):
        tensor, header = self.tensor(name), self.file.header
        base = header.directory_offset + self.file.directory.side_data_offset
        layout = s.QUANTIZED_TENSOR if tensor.quantized else s.DELTA_TENSOR
        self.put(layout, base + tensor.entry.side_data_offset, **fields)

    def low_rank(self, name, **fields):
        self.put(s.LOW_RANK_HEADER, self.tensor(name).entry.stored_offset, **fields)
        self.digest(name)

    def byte(self, at, value):
        """One byte of the file; of a delta, of its container."""
        self.data[self.start + at] = value

    def stored(self, name, at, value, digest=True):
        """Stored bytes of a tensor from `at` on, with its digests made anew where it is raw."""
        if isinstance(value, int):
            value = bytes([value])
        tensor = self.tensor(name)
        place = self.start + tensor.entry.stored_offset + at % max(tensor.entry.stored_length, 1)
        self.data[place : place + len(value)] = value
        if digest:
            self.digest(name)

    def digest(self, name):
        entry = self.tensor(name).entry
        begin = self.start + entry.stored_offset
        logical = bytes(self.data[begin : begin + entry.stored_length])
        crc = digests.crc32(logical)
        self.entry(name, crc32=crc, content_hash=digests.content_hash(logical))
        self.payload_header(name, checksum=crc)

    def chunk_bytes(self, name, number, change):
        """Stored bytes of a chunk as change(bytearray) leaves them, with the chunk's CRC-32."""
        chunk = self.tensor(name).chunks[number]
        place = slice(self.start + chunk.offset, self.start + chunk.offset + chunk.stored_length)
        stored = bytearray(self.data[place])
        change(stored)
        self.data[place] = stored
        self.chunk(name, number, crc32=digests.crc32(stored))

    def delta(self, **fields):
        self.front(s.DELTA_HEADER, 0, fields)

    def reference(self, **fields):
        self.front(s.DELTA_REFERENCE, 64, fields)

    def front(self, layout, at, fields):
        start, self.start = self.start, 0
        self.put(layout, at, **fields)
        self.start = start

    def sealed(self):
        if self.file.header.checksum_type == 3:
            body = reseal(self.data[self.start :], self.sound[self.start :])
            self.data[self.start :] = body
        if self.start:
            field = 64 + s.DELTA_REFERENCE.offsets["crc32"]
            self.front(s.DELTA_REFERENCE, 64, {"crc32": self.front_crc(field)})
        return bytes(self.data)

    def front_crc(self, field):
        return digests.crc32_without(bytes(self.data[: self.start]), field)


__all__ = ["Editor", "Link"]
