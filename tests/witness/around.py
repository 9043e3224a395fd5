"""What may be around a checkpoint, or lie beside it: wrappers and side files."""

import hashlib
import re
import struct

import digests
import packed
import structures as s
from structures import Refused

ZSTD, LZ4 = b"\x28\xb5\x2f\xfd", b"\x04\x22\x4d\x18"
MOST = {ZSTD: lambda n: 131072 * (n // 4 + 1), LZ4: lambda n: 255 * n}
TABLE_MAGIC = b"\x5e\x2a\x4d\x18"
TABLES = {ZSTD: b"\xb1\xea\x92\x8f", LZ4: b"TLZ4"}


def refuse(field, offset, value, expected, kind="FormatError", section="wrapper"):
    raise Refused(kind, section, field, offset, value, expected)


def is_skippable(data):
    return b"\x50" <= bytes(data[:1]) <= b"\x5f" and bytes(data[1:4]) == b"\x2a\x4d\x18"


def behind_skippable(data):
    return data[8 + struct.unpack_from("<I", data, 4)[0] :]


def frame_magic(data):
    """Of the first frame, before which one may be skipped; None where there is none."""
    if is_skippable(data) and len(data) >= 8:
        data = behind_skippable(data)
    magic = bytes(data[:4])
    return magic if magic in TABLES else None


def is_wrapped(data):
    return frame_magic(data) is not None


def decode_frames(data):
    """The contents of frames up to the end, one after the other."""
    out, rest = b"", bytes(data)
    magic = frame_magic(data)
    while rest:
        if is_skippable(rest):
            if len(behind_skippable(rest)) + 8 + struct.unpack_from("<I", rest, 4)[0] != len(rest):
                refuse("", len(data), "the end", "more of the skippable frame")
            rest = behind_skippable(rest)
            continue
        if rest[:4] != magic:
            refuse("", len(data) - len(rest), rest[:4].hex(" "), "a frame")
        try:
            if magic == ZSTD:
                decoder = digests.zstandard.ZstdDecompressor().decompressobj()
            else:
                decoder = digests.lz4_frame.LZ4FrameDecompressor()
            out += decoder.decompress(rest)
        except Exception as error:  # the packages have exception classes of their own
            refuse("", len(data) - len(rest), error, "a frame that decodes")
        if not decoder.eof:
            refuse("", len(data), "the end", "more of the frame")
        rest = decoder.unused_data
    return out


def ends_with_table(data):
    """Whether a skippable frame with the magic of seek tables ends where the file ends."""
    data = bytes(data)
    places = (m.start() for m in re.finditer(re.escape(TABLE_MAGIC), data[: len(data) - 13]))
    return any(at + 8 + struct.unpack_from("<I", data, at + 4)[0] == len(data) for at in places)


def read_table(data):
    """[(offset, entry, checksum or None)] of a seek table; None where there is none."""
    size = len(data)
    if size < 17:
        return None
    footer = s.SEEK_FOOTER.read(data, size - 9)
    magic = frame_magic(data)
    if footer.magic != TABLES[magic]:
        return None
    stride = 12 if footer.descriptor & 0x80 else 8
    length = stride * footer.frame_count
    start = size - 9 - length - 8
    fits = 1 <= footer.frame_count <= 1 << 27 and start >= 0
    fits = fits and bytes(data[start : start + 4]) == TABLE_MAGIC
    if not fits and not ends_with_table(data):
        return None
    footer.require("frame_count", fits, "as many as the skippable frame has")
    header = s.SKIPPABLE_HEADER.read(data, start)
    footer.require("descriptor", footer.descriptor & 0x7C == 0, "bits 2 to 6 zero")
    header.require("length", header.length == length + 9, length + 9)
    table, at = [], 0
    for i in range(footer.frame_count):
        entry = s.SEEK_ENTRY.read(data, start + 8 + stride * i)
        legal = 1 <= entry.stored_length <= start - at
        entry.require("stored_length", legal, f"1 to {start - at}")
        most = MOST[magic](entry.stored_length)
        entry.require("content_length", entry.content_length <= most, most)
        checksum = data[start + 16 + stride * i : start + 8 + stride * (i + 1)]
        table.append((at, entry, bytes(checksum) or None))
        at += entry.stored_length
    if at != start:
        refuse("stored_length", start, at, start)
    return table


def unwrap(data):
    """The bytes that were wrapped."""
    table = read_table(data)
    if table is None:
        return decode_frames(data)
    out = b""
    for at, entry, checksum in table:
        content = decode_frames(data[at : at + entry.stored_length])
        entry.require("content_length", len(content) == entry.content_length, len(content))
        expected = digests.low_xxh64(content)
        if None not in (checksum, expected) and checksum != expected:
            refuse("checksum", at, checksum.hex(" "), expected.hex(" "), "IntegrityError")
        out += content
    return out


def unwrapped(data):
    """The bytes of a file, whether wrapped, packed or not."""
    if packed.is_packed(data):
        return packed.unpack(data)
    return unwrap(data) if is_wrapped(data) else data


class SideFile:
    """A side file, checked: the bytes of its source by their offsets."""

    def __init__(self, data):
        header = s.META_HEADER.read(data, 0)
        header.require("magic", header.magic == b"TMET", "54 4d 45 54")
        header.require("meta_version", header.meta_version == 1, 1, "UnsupportedError")
        header.require("meta_length", header.meta_length == len(data), len(data))
        count = header.extent_count
        room = (len(data) - 96) // 16
        header.require("extent_count", 1 <= count <= room, f"1 to {room}")
        header.require("source_length", header.source_length >= 256, "256 or more")
        crc = digests.crc32_without(data[: 64 + 16 * count], 8)
        header.require("meta_crc32", header.meta_crc32 == crc, crc, "IntegrityError")
        self.extents, at, end = {}, 64 + 16 * count, 0
        for i in range(count):
            extent = s.META_EXTENT.read(data, 64 + 16 * i)
            stop = extent.offset + extent.length
            extent.require("length", extent.length > 0 and stop <= header.source_length, "inside")
            extent.require("offset", extent.offset >= end, end)
            self.extents[extent.offset] = bytes(data[at : at + extent.length])
            at, end = at + extent.length, stop
        header.require("extent_count", at == len(data) - 32, len(data) - 32)
        if hashlib.sha256(data[:-32]).digest() != bytes(data[-32:]):
            refuse("", at, "another", "SHA-256", "IntegrityError", "side_file")
        self.check_source(header)

    def bytes_at(self, offset, length):
        """Bytes of the source; extents may follow each other without a gap."""
        for start, held in self.extents.items():
            if start <= offset < start + len(held):
                part = held[offset - start : offset - start + length]
                rest = length - len(part)
                return part + (self.bytes_at(offset + len(part), rest) if rest else b"")
        refuse("extent", offset, "no extent", f"{length} bytes", section="side_file")

    def check_source(self, meta):
        source = s.HEADER.read(self.bytes_at(0, 256), 0)
        source.require("flags", not source.flags & 1 << 6, "bit 6 clear: no delta")
        meta.require("source_length", meta.source_length == source.file_length, source.file_length)
        closing = self.bytes_at(source.file_length - 32, 32)
        meta.require("source_checksum", meta.source_checksum == closing, closing.hex(" "))
        self.bytes_at(source.metadata_offset, source.metadata_length or 0)
        self.bytes_at(source.directory_offset, source.file_length - source.directory_offset)
        for k in range(source.num_regions):
            at = source.region_index_offset + 48 * k
            entry = s.REGION_INDEX_ENTRY.read(self.bytes_at(at, 48), 0)
            start = entry.data_offset
            header = s.REGION_HEADER.read(self.bytes_at(start, 64), 0)
            extension = s.REGION_EXTENSION.read(self.bytes_at(start + 64, 128), 0)
            for record, piece, length in (
                (header, "config", header.config_length),
                (header, "homeostatic", 16),
                (extension, "dynamic_state", 32),
                (extension, "region_metadata", extension.region_metadata_length),
            ):
                offset = getattr(record, f"{piece}_offset")
                if offset:
                    self.bytes_at(start + offset, length)
        if source.connectivity_length:
            at = source.connectivity_offset
            header = s.CONNECTIVITY_HEADER.read(self.bytes_at(at, 32), 0)
            self.bytes_at(at, 32 + 96 * header.num_connections)
