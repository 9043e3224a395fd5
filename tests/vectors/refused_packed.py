"""Packed deltas that break one rule of the checklist each."""

import struct

import digests
import packed
from refused_header import Case

SOUND = "brief_packed.delta.thalia"
HEADER_BYTES, CLOSING_AT, CRC_AT = 16, 0, 96  # the last two in the digests


def field(at, value):
    """A field of the packed header changed; `value` may take what is there."""

    def change(sound):
        data = bytearray(sound)
        old = struct.unpack_from("<I", data, at)[0]
        struct.pack_into("<I", data, at, value(old) if callable(value) else value)
        return bytes(data)

    return change


def frame_end(sound):
    return HEADER_BYTES + struct.unpack_from("<I", sound, 12)[0]


def head(change):
    """The columns changed, in a frame of their own."""

    def apply(sound):
        end = frame_end(sound)
        columns = digests.zstandard.ZstdDecompressor().decompress(sound[HEADER_BYTES:end])
        compressor = digests.zstandard.ZstdCompressor(level=19, write_checksum=True)
        frame = compressor.compress(change(columns))
        return sound[:12] + struct.pack("<I", len(frame)) + frame + sound[end:]

    return apply


def digest(at):
    def change(sound):
        data = bytearray(sound)
        data[frame_end(sound) + at] ^= 1
        return bytes(data)

    return change


def broken_frame(sound):
    """Its checksum, the last four bytes."""
    data = bytearray(sound)
    data[frame_end(sound) - 1] ^= 0xFF
    return bytes(data)


def cut_digests(sound):
    return sound[: frame_end(sound) + 10]


def other_roles(columns):
    """The first tensor's, which is a parameter, becomes that of an optimizer's tensor: those come last."""
    head_of = packed.Head(columns)
    names = b"".join(t.name + b"\xff" for t in head_of.tensors if t.region == 1)
    at = columns.index(names) + len(names)
    roles = bytes(t.role for t in head_of.tensors if t.region is not None)
    assert columns[at : at + len(roles)] == roles
    return columns[:at] + bytes([6]) + columns[at + 1 :]


PACKED = [
    Case("W6", "packed_version", SOUND, field(4, 2)),
    Case("W7", "contents_of_no_more", SOUND, lambda sound: field(8, len(sound))(sound), "wrapper.contents_length"),
    Case("W7", "contents_of_more_than_64_mib", SOUND, field(8, (1 << 26) + 1), "wrapper.contents_length"),
    Case("W7", "bytes_after_payloads", SOUND, lambda sound: sound + b"x", "wrapper.payloads"),
    Case("W8", "frame_of_no_bytes", SOUND, field(12, 0), "wrapper.frame_length"),
    Case("W8", "head_without_its_end", SOUND, head(lambda columns: columns[:-1]), "wrapper.head"),
    Case("W8", "no_digests", SOUND, cut_digests, "wrapper.digests"),
    Case("W8", "payload_without_its_end", SOUND, lambda sound: sound[:-1], "wrapper.payloads"),
    Case("W9", "broken_frame_of_a_head", SOUND, broken_frame),
    # The first number, of one byte, in two.
    Case("W10", "long_number", SOUND, head(lambda columns: bytes([columns[0] | 128, 0]) + columns[1:]), "wrapper.head"),
    Case("W10", "more_columns", SOUND, head(lambda columns: columns + b"\0"), "wrapper.head"),
    Case("W10", "roles_in_another_order", SOUND, head(other_roles), "wrapper.roles"),
    Case("W11", "contents_of_more", SOUND, field(8, lambda length: length + 4096)),
    Case("W12", "packed_crc32", SOUND, digest(CRC_AT), "wrapper.crc32"),
    Case("W12", "packed_closing_checksum", SOUND, digest(CLOSING_AT), "wrapper.closing_checksum"),
]
