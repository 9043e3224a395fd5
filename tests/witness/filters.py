"""The filters of chunks, undone. docs/format.md, "Chunks"."""


def join_planes(width, planes):
    count = len(planes) // width
    raw = bytearray(planes)  # what follows the last word stays where it is
    for k in range(width):
        raw[k : count * width : width] = planes[k * count : (k + 1) * count]
    return bytes(raw)


def add_differences(width, raw):
    out = bytearray(raw)
    word = 0
    for at in range(0, len(raw) // width * width, width):
        word = (word + int.from_bytes(raw[at : at + width], "little")) % (1 << 8 * width)
        out[at : at + width] = word.to_bytes(width, "little")
    return bytes(out)


def undo(name, filtered):
    """The raw bytes of what the filter of that name made of them."""
    if name == "none":
        return filtered
    kind, _, width = name.rpartition("_")
    raw = join_planes(int(width), filtered)
    return add_differences(int(width), raw) if kind == "difference_planes" else raw
