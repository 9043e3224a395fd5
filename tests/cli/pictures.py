"""What tests of pictures and pages share: files to draw, and pixels to look at. Skips without numpy."""

import json
import struct
import sys
import zlib

try:
    import numpy
except ImportError:
    print("skipped: numpy is not installed")
    sys.exit(77)


def write_safetensors(path, tensors):
    """The file of the format, of arrays of f32."""
    header, data = {}, b""
    for name, array in tensors.items():
        piece = array.astype("<f4").tobytes()
        offsets = [len(data), len(data) + len(piece)]
        header[name] = {"dtype": "F32", "shape": list(array.shape), "data_offsets": offsets}
        data += piece
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def png_pixels(data):
    """Rows of pixels, each of some bytes, of a PNG without interlacing."""
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    at, compressed = 8, b""
    while at < len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        if kind == b"IHDR":
            width, height, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", body)
            assert depth == 8 and interlaced == 0
            channels = {2: 3, 6: 4}[colour]
        elif kind == b"IDAT":
            compressed += body
        at += 12 + length
    raw = numpy.frombuffer(zlib.decompress(compressed), numpy.uint8).reshape(height, -1)
    assert raw.shape[1] == 1 + width * channels
    rows = numpy.zeros((height, width, channels), numpy.uint8)
    above = numpy.zeros(width * channels, numpy.uint8)
    for y, line in enumerate(raw):
        above = unfiltered(line[0], line[1:], above, channels)
        rows[y] = above.reshape(width, channels)
    return rows


def unfiltered(kind, line, above, channels):
    """A line of a PNG, of which each byte was told as its distance from its neighbours."""
    if kind == 0:
        return line.copy()
    if kind == 2:
        return line + above
    out = [0] * channels
    corner = [0] * channels + above.tolist()
    for i, (byte, up) in enumerate(zip(line.tolist(), above.tolist(), strict=True)):
        left, diagonal = out[i], corner[i]
        if kind == 1:
            out.append((byte + left) & 255)
        elif kind == 3:
            out.append((byte + (left + up) // 2) & 255)
        else:
            distances = abs(up - diagonal), abs(left - diagonal), abs(left + up - 2 * diagonal)
            near = (left, up, diagonal)[distances.index(min(distances))]
            out.append((byte + near) & 255)
    return numpy.array(out[channels:], numpy.uint8)
