"""CRC-32, content hash, closing checksum and block tree; and the codecs of chunks.

Only the standard library is needed for files with SHA-256 leaves and raw payloads. Where a package
is absent, what needs it is left unchecked, and `unchecked` says so.
"""

import hashlib
import zlib

import chunk_codecs

try:
    import xxhash
except ImportError:
    xxhash = None
try:
    import zstandard
except ImportError:
    zstandard = None
try:
    import lz4.frame as lz4_frame
except ImportError:
    lz4_frame = None

PIECE = 1 << 20
unchecked = {}


def leave(what, package):
    """Notes that something was not checked."""
    unchecked[what] = f"{what} not checked: the Python package {package} is not installed"


def crc32(data):
    crc = 0
    for at in range(0, len(data), PIECE):
        crc = zlib.crc32(data[at : at + PIECE], crc)
    return crc


def crc32_without(data, field):
    """CRC-32 of a structure with its own 4-byte CRC field taken as zero."""
    return zlib.crc32(bytes(data[:field]) + bytes(4) + bytes(data[field + 4 :]))


def content_hash(data):
    """None where it cannot be computed."""
    if xxhash is None:
        leave("content hashes", "xxhash")
        return None
    pieces = (data[at : at + PIECE] for at in range(0, len(data), PIECE))
    digests = b"".join(xxhash.xxh3_128_digest(piece) for piece in pieces)
    return xxhash.xxh3_128_digest(digests)


def low_xxh64(data):
    """The low half of XXH64, as a seek table has it; None where it cannot be computed."""
    if xxhash is None:
        leave("checksums of seek tables", "xxhash")
        return None
    return (xxhash.xxh64_intdigest(data) & 0xFFFFFFFF).to_bytes(4, "little")


def leaf(algorithm, data):
    """The digest of one block; None where it cannot be computed."""
    if algorithm == "sha256":
        return hashlib.sha256(data).digest()
    if xxhash is None:
        leave("leaves of the block tree", "xxhash")
        return None
    return xxhash.xxh3_128_digest(data)


def leaf_length(algorithm):
    return 32 if algorithm == "sha256" else 16


def closing_checksum(header, data, algorithm):
    """The 32 bytes that the file must end with."""
    body = data[: header.file_length - 32]
    if header.checksum_type == 1:
        return hashlib.sha256(body).digest()
    if header.checksum_type == 2:
        return crc32(body).to_bytes(4, "little") + bytes(28)
    if header.checksum_type == 0:
        return bytes(32)
    digest = hashlib.sha256(b"THALIA-TREE-1")
    digest.update(bytes([header.leaf_algorithm, header.integrity_block_log2]))
    digest.update(header.integrity_offset.to_bytes(8, "little"))
    digest.update(data[:256])
    digest.update(data[header.integrity_offset : header.integrity_offset + header.integrity_length])
    return digest.digest()


def damaged_blocks(header, data, algorithm):
    """Numbers of the blocks whose leaves are not those of the integrity table."""
    length = leaf_length(algorithm)
    size = 1 << header.integrity_block_log2
    for block, start in enumerate(range(0, header.integrity_offset, size)):
        content = data[start : min(start + size, header.integrity_offset)]
        if block == 0:
            content = bytes(256) + bytes(content[256:])
        digest = leaf(algorithm, content)
        at = header.integrity_offset + block * length
        if digest is not None and digest != bytes(data[at : at + length]):
            yield block


def decode_zstd(stored, raw_length):
    if zstandard is None:
        leave("zstd chunks", "zstandard")
        return None
    parameters = zstandard.get_frame_parameters(stored)
    if parameters.content_size != raw_length or parameters.dict_id != 0:
        raise ValueError(f"content size {parameters.content_size}, dictionary {parameters.dict_id}")
    decoder = zstandard.ZstdDecompressor().decompressobj()
    return whole_frame(decoder, decoder.decompress(stored))


def decode_lz4(stored, raw_length):
    if lz4_frame is None:
        leave("lz4 chunks", "lz4")
        return None
    content_size = lz4_frame.get_frame_info(stored)["content_size"]
    if content_size != raw_length:
        raise ValueError(f"content size {content_size}")
    decoder = lz4_frame.LZ4FrameDecompressor()
    return whole_frame(decoder, decoder.decompress(stored))


def whole_frame(decoder, raw):
    if not decoder.eof or decoder.unused_data:
        raise ValueError("not one frame exactly")
    return raw


DECODERS = {
    "zstd": decode_zstd,
    "lz4": decode_lz4,
    "plane_entropy": chunk_codecs.decode_plane_entropy,
    "packed_exponents": chunk_codecs.decode_packed_exponents,
}


def decode_chunk(codec, stored, raw_length):
    """The raw bytes; None where the package for the codec is absent. ValueError for bad bytes."""
    if codec == "none":
        return stored
    try:
        raw = DECODERS[codec](bytes(stored), raw_length)
    except ValueError:
        raise
    except Exception as error:  # the packages have exception classes of their own
        raise ValueError(f"{codec}: {error}") from error
    if raw is not None and len(raw) != raw_length:
        raise ValueError(f"decodes to {len(raw)} bytes")
    return raw
