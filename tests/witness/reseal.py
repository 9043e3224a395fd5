"""CRCs, leaves, commit record and closing checksum of a file that was changed, made to fit again."""

import digests
import structures as s


def reseal(data, sound=None):
    """The file with CRCs, leaves, commit record and closing checksum made to fit again; all of them
    stand where the sound file has them."""
    data = bytearray(data)

    def put(offset, value):
        data[offset : offset + len(value)] = value

    def put_crc(start, length, field):
        crc = digests.crc32_without(data[start : start + length], field)
        put(start + field, crc.to_bytes(4, "little"))

    header = s.HEADER.read(sound or data, 0)
    put_crc(header.directory_offset, 128, s.DIRECTORY_HEADER.offsets["directory_crc32"])
    put_crc(0, 256, s.HEADER.offsets["header_crc32"])
    put(header.integrity_offset - 256, data[:256])
    block = 1 << header.integrity_block_log2
    for number, start in enumerate(range(0, header.integrity_offset, block)):
        content = bytes(data[start : min(start + block, header.integrity_offset)])
        if number == 0:
            content = bytes(256) + content[256:]
        put(header.integrity_offset + 32 * number, digests.leaf("sha256", content))
    put(header.file_length - 32, digests.closing_checksum(header, data, "sha256"))
    return bytes(data)
