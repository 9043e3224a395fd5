"""Files that break a rule where only a reader that takes it to the letter sees it: beside the rule
everything holds, down to the bytes that an easier check would stumble over."""

import struct

import digests
import structures as s
from refused_around import META, ZST, meta, side, table_entry
from refused_header import Case, edit, flip, plus
from refused_tensor import name_bytes, region_order, stored
from valid_edits import single_tensor, skippable


def moved(e, at, length, by):
    """Bytes of the file, to where nothing stood."""
    content = bytes(e.data[at : at + length])
    for i in range(length):
        e.byte(at + i, 0)
    assert not any(e.data[at + by : at + by + length])
    for i, byte in enumerate(content):
        e.byte(at + by + i, byte)


def padding(find):
    """A byte that belongs to nothing."""

    def change(e):
        at = find(e)
        assert e.sound[at] == 0
        e.byte(at, 1)

    return change


def last_of_gap(e):
    """Before the second region."""
    return e.file.regions[1].offset - 1


def behind_directory(e):
    header = e.file.header
    end = header.directory_offset + header.directory_length
    assert end < header.region_index_offset
    return header.region_index_offset - 1


def behind_config(e):
    region = e.file.regions[0]
    return region.offset + 192 + region.header.config_length


def commit_record(data, e):
    data[e.file.header.integrity_offset - 256 + 12] ^= 1


def unsealed(change):
    def apply(e):
        data = bytearray(e.sound)
        change(data, e)
        return bytes(data)

    return apply


def metadata_on_8(e):
    header = e.file.header
    moved(e, header.metadata_offset, header.metadata_length, 8)
    e.header(metadata_offset=plus(8))


def text(content):
    """As the metadata, with white space behind it where it is shorter than what stood there."""

    def change(e):
        header = e.file.header
        assert len(content) <= header.metadata_length
        for i, byte in enumerate(content.ljust(header.metadata_length)):
            e.byte(header.metadata_offset + i, byte)

    return change


def homeostatic_on_64(e):
    region = e.file.regions[0]
    moved(e, region.offset + region.header.homeostatic_offset, 16, -16)
    e.region(0, homeostatic_offset=plus(-16), homeostatic_length=plus(16))


def dynamic_on_32(e):
    region = e.file.regions[0]
    moved(e, region.offset + region.extension.dynamic_state_offset, 32, -32)
    e.extension(0, dynamic_state_offset=plus(-32), dynamic_state_length=plus(32))


def region_metadata_on_8(e):
    region = e.file.regions[0]
    at, length = region.extension.region_metadata_offset, region.extension.region_metadata_length
    moved(e, region.offset + at, length, 8)
    e.extension(0, region_metadata_offset=plus(8))
    e.index(0, data_length=plus(8))


def off_a_page(tensor):
    """64 bytes before where it may start."""

    def change(e):
        entry = e.tensor(tensor).entry
        content = bytes(e.data[entry.stored_offset - 32 : entry.stored_offset + entry.stored_length])
        for i in range(len(content)):
            e.byte(entry.stored_offset - 32 + i, 0)
        for i, byte in enumerate(content):
            e.byte(entry.stored_offset - 96 + i, byte)
        e.entry(tensor, stored_offset=plus(-64))
        for k, chunk in enumerate(e.tensor(tensor).chunks):
            e.chunk(tensor, k, offset=chunk.offset - 64)
        e.region(0, weights_offset=plus(-64))
        e.index(0, data_length=plus(-64))

    return change


def one_payload(e):
    """Two tensors of equal elements, and one payload for both."""
    first, second = e.tensor("").entry, e.tensor("\0nul\0").entry
    for i in range(-32, second.stored_length):
        e.byte(second.stored_offset + i, 0)
    e.entry("\0nul\0", stored_offset=first.stored_offset)


def csr_of_rank_3(e):
    e.shape("csr.i8", 3, 4, 1)
    e.entry("csr.i8", ndim=3)


def packed_csr(e):
    """Two elements of four bits: one byte of values."""
    tensor = e.tensor("a")
    assert tensor.encoding == "csr" and tensor.entry.nnz == 2
    shrunk = tensor.entry.stored_length - tensor.values_at - 1
    for i in range(1, tensor.entry.stored_length - tensor.values_at):
        e.byte(tensor.entry.stored_offset + tensor.values_at + i, 0)
    begin = tensor.entry.stored_offset
    logical = bytes(e.data[begin : begin + tensor.values_at + 1])
    crc = digests.crc32(logical)
    e.entry(
        "a",
        dtype=21,
        logical_length=plus(-shrunk),
        stored_length=plus(-shrunk),
        crc32=crc,
        content_hash=digests.content_hash(logical),
    )
    e.payload_header("a", dtype=21, checksum=crc)
    e.record(0, logical_bytes=plus(-shrunk), stored_bytes=plus(-shrunk))
    e.region(0, weights_length=plus(-shrunk))
    e.index(0, data_length=plus(-shrunk))


def short_chunk_first(e):
    payload = bytes(e.tensor("mixed").data)
    single_tensor(e, "mixed", [payload[:100], payload[100:]], [(100, 0, 0), (len(payload) - 100, 0, 0)], payload)


def frame(make):
    """Another frame for the first chunk of f32, no longer than the room up to the next header."""

    def change(e):
        tensor = e.tensor("f32")
        (chunk,), entry = tensor.chunks, tensor.entry
        end = chunk.offset + chunk.stored_length
        content = make(e.sound[chunk.offset : end])
        grown = len(content) - chunk.stored_length
        assert not any(e.sound[end : end + max(grown, 0)])
        for i, byte in enumerate(content + bytes(max(-grown, 0))):
            e.byte(chunk.offset + i, byte)
        e.chunk("f32", 0, stored_length=len(content), crc32=digests.crc32(content))
        e.entry("f32", stored_length=plus(grown))
        e.record(0, stored_bytes=plus(grown))
        if all(other.entry.stored_offset <= entry.stored_offset for other in e.file.tensors):
            e.region(0, weights_length=plus(grown))
            e.index(0, data_length=plus(grown))

    return change


def zstd_without_size(stored):
    content = digests.zstandard.ZstdDecompressor().decompress(stored)
    return digests.zstandard.ZstdCompressor(level=3, write_content_size=False).compress(content)


def lz4_without_size(stored):
    return digests.lz4_frame.compress(digests.lz4_frame.decompress(stored), store_size=False)


def and_a_frame_to_skip(stored):
    return stored + skippable(b"")


def front(length):
    return lambda e: e.sound[:length]


def without_directory(data):
    """The first byte of the directory in no extent."""
    count = struct.unpack_from("<I", data, 0x0C)[0]
    entry = 64 + 16 * (count - 1)
    offset, length = struct.unpack_from("<QQ", data, entry)
    struct.pack_into("<QQ", data, entry, offset + 1, length - 1)
    del data[len(data) - 32 - length]
    struct.pack_into("<Q", data, 0x18, len(data))


def of_a_delta(data):
    """Its source says that it is a delta's container."""
    count = struct.unpack_from("<I", data, 0x0C)[0]
    at = 64 + 16 * count
    extents = [struct.unpack_from("<QQ", data, 64 + 16 * i) for i in range(count)]
    held = {}
    for offset, length in extents:
        held[offset] = at
        at += length
    last_offset, _ = extents[-1]
    start = held[0]
    data[start + 10] |= 1 << 6
    header = s.HEADER.read(bytes(data), start)
    crc = digests.crc32_without(bytes(data[start : start + 256]), s.HEADER.offsets["header_crc32"])
    struct.pack_into("<I", data, start + s.HEADER.offsets["header_crc32"], crc)
    tail = held[last_offset] - last_offset
    record = header.integrity_offset - 256 + tail
    data[record : record + 256] = data[start : start + 256]


def closed_again(change):
    """With the source's closing checksum made anew: it is that of a tree, over header and leaves."""

    def apply(data):
        change(data)
        count = struct.unpack_from("<I", data, 0x0C)[0]
        start = 64 + 16 * count
        header = s.HEADER.read(bytes(data), start)
        last = len(data) - 32
        begin = last - 32 - header.integrity_length
        view = bytes(header.integrity_offset) + bytes(data[begin:last])
        view = bytes(data[start : start + 256]) + view[256:]
        closing = digests.closing_checksum(header, view, "sha256")
        data[last - 32 : last] = closing
        data[0x20:0x40] = closing

    return apply


def same_names(e):
    name_bytes(1, b"first")(e)
    e.index(1, region_name=b"first".ljust(32, b"\0"))
    region_order(0, 1)(e)


def directory_magic(e):
    """Without its CRC: that is looked at first."""
    e.byte(e.file.header.directory_offset, ord("t"))
    data = bytearray(e.sealed())
    at = e.file.header.directory_offset + s.DIRECTORY_HEADER.offsets["directory_crc32"]
    data[at : at + 4] = e.sound[at : at + 4]
    return bytes(data)


def other_type(e):
    e.entry("same", dtype=1)
    e.payload_header("same", dtype=1)


def version_1(e):
    e.delta(delta_version=1)


DETAILS = [
    Case("H1", "two_frames_to_skip", ZST, lambda sound: skippable(b"") + skippable(b"") + sound, "header.magic"),
    Case("H1", "wrapper_in_a_wrapper", ZST, lambda sound: digests.zstandard.ZstdCompressor().compress(sound)),
    Case("H14", "metadata_on_a_multiple_of_8", "pieces", metadata_on_8, "header.metadata_offset"),
    Case("H17", "num_regions", "minimal", edit("header", num_regions=(1 << 32) - 1), "header.num_regions"),
    Case("H25", "commit_record_alone", "checksum_none", unsealed(commit_record)),
    *[
        Case("H28", f"metadata_{name}", "pieces", text(content))
        for name, content in (
            ("half_of_a_pair", b'{"a":"\\ud83d"}'),
            ("halves_turned", b'{"a":"\\ude00\\ud83d"}'),
            ("nan", b'{"a":NaN}'),
            ("byte_order_mark", b"\xef\xbb\xbf{}"),
            ("no_utf8", b'{"a":"\xc3"}'),
            ("control_character", b'{"a":"\x01"}'),
            ("no_object", b"[]"),
            ("two_objects", b"{}{}"),
            ("comma_behind", b'{"a":1,}'),
            ("leading_zero", b'{"a":01}'),
        )
    ],
    Case("H29", "last_byte_of_a_gap", "pieces", padding(last_of_gap)),
    Case("H29", "behind_directory_of_a_later_generation", "appended", padding(behind_directory)),
    Case("H29", "in_a_region_of_a_later_generation", "appended", padding(behind_config)),
    Case("H30", "one_payload_of_two_tensors", "names", one_payload, "payload"),
    Case("R12", "homeostatic_on_64", "appended", homeostatic_on_64, "region.homeostatic_offset"),
    Case("R12", "dynamic_state_on_32", "pieces", dynamic_on_32, "region.dynamic_state_offset"),
    Case("R13", "region_metadata_on_8", "pieces", region_metadata_on_8),
    Case("D3", "directory_magic_and_crc32", "minimal", directory_magic),
    Case("D10", "two_regions_of_one_name", "texts", same_names),
    Case("T7", "csr_of_rank_3", "sparse", csr_of_rank_3),
    Case("T7", "packed_csr_that_fits", "extents", packed_csr),
    Case("T12", "page_of_raw_bytes", "page", off_a_page("page")),
    Case("T12", "page_of_chunks", "large", off_a_page("large")),
    stored("T22", "csr_pointer_decreases", "sparse", "csr.f32", 4, struct.pack("<II", 3, 1)),
    Case("C1", "short_chunk_first", "stored_chunks", short_chunk_first, "directory.raw_length"),
    Case("C3", "zstd_without_content_size", "zstd", frame(zstd_without_size)),
    Case("C3", "zstd_and_a_frame_to_skip", "zstd", frame(and_a_frame_to_skip)),
    Case("C3", "lz4_without_content_size", "lz4", frame(lz4_without_size)),
    Case("C3", "lz4_and_a_frame_to_skip", "lz4", frame(and_a_frame_to_skip)),
    Case("L1", "delta_version_1", "small.delta", version_1),
    Case("L6", "front_alone", "small.delta", front(4096), "delta.container_offset"),
    Case("L6", "half_a_front", "small.delta", front(100), "delta"),
    Case("B7", "chain_of_another_type", "small.delta", other_type),
    Case("W2", "content_of_another_length", ZST, table_entry(0, 4, 4095)),
    Case("S8", "directory_in_no_extent", META, meta(without_directory)),
    Case("S10", "side_file_of_a_delta", META, meta(closed_again(of_a_delta))),
]

__all__ = ["DETAILS", "edit", "flip", "side"]
