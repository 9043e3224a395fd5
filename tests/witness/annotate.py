#!/usr/bin/env python3
"""Prints every byte of a small .thalia file with what it means, in the order of the file.

Makes the worked example of docs/format/examples.md: annotate.py FILE.
"""

import pathlib
import sys

import structures as s
from elements import DTYPES, values

from checkpoint import Checkpoint

ROW = 16
NAMES = {
    "checksum_type": s.CHECKSUM_TYPES,
    "leaf_algorithm": s.LEAF_ALGORITHMS,
    "neuron_type": s.NEURON_TYPES,
    "role": s.ROLES,
    "encoding": s.ENCODINGS,
    "dtype": [name for name, _, _ in DTYPES],
}


def rows(offset, data, text):
    """Lines of at most 16 bytes, the text behind the first."""
    for at in range(0, len(data), ROW):
        part = bytes(data[at : at + ROW]).hex(" ")
        yield f"{offset + at:04x}  {part:<47}  {text if at == 0 else ''}".rstrip()


def field_text(name, value):
    if isinstance(value, int):
        return f"{name} {value}" + (f", {NAMES[name][value]}" if name in NAMES else "")
    if isinstance(value, tuple):
        return f"{name} {', '.join(map(str, value))}"
    text = value.rstrip(b"\0")
    readable = text and text.isascii() and text.decode().isprintable()
    return f'{name} "{text.decode()}"' if readable else name


def structure(data, layout, offset):
    """A structure field by field; of fields that are zero throughout, spare ones are left out."""
    record = layout.read(data, offset)
    ends = [*list(layout.offsets.values())[1:], layout.size]
    for (name, at), end in zip(layout.offsets.items(), ends, strict=True):
        content = bytes(data[offset + at : offset + end])
        if any(content) or not name.startswith("zero_"):
            yield from rows(offset + at, content, field_text(name, getattr(record, name)))


def tensor_parts(file, tensor):
    entry = tensor.entry
    csr = tensor.encoding == "csr"
    label = f"Payload header and payload of {tensor.name}"
    header = s.CSR_HEADER if csr else s.TENSOR_HEADER
    yield entry.stored_offset - 32, label, list(structure(file.data, header, entry.stored_offset - 32))
    contents = tensor.contents()
    ends = [0, tensor.indices_at, tensor.indices_end] if csr else [0]
    lines = []
    for start, end, (name, numbers) in zip(ends, [*ends[1:], entry.logical_length], contents.items(), strict=True):
        part = file.data[entry.stored_offset + start : entry.stored_offset + end]
        lines += rows(entry.stored_offset + start, part, f"{name} {', '.join(map(str, numbers))}")
    yield entry.stored_offset, None, lines


def parts(file):
    """(offset, heading, lines) of everything in the file, in no order."""
    data, header = file.data, file.header

    def text(offset, length, heading):
        content = bytes(data[offset : offset + length])
        return offset, heading, list(rows(offset, content, content.decode()))

    def table(layout, offset, heading):
        return offset, heading, list(structure(data, layout, offset))

    yield table(s.HEADER, 0, "Header")
    yield text(header.metadata_offset, header.metadata_length, "Metadata")
    for region in file.regions:
        start = region.offset
        yield table(s.REGION_HEADER, start, f"Region header of {region.name}")
        yield table(s.REGION_EXTENSION, start + 64, "Region extension")
        config = region.header.config_offset, region.header.config_length
        yield text(start + config[0], config[1], "Config")
        dynamic_state = region.extension.dynamic_state_offset
        if dynamic_state:
            yield table(s.DYNAMIC_STATE_HEADER, start + dynamic_state, "Dynamic state header")
        yield table(s.REGION_INDEX_ENTRY, region.entry.offset, "Region index")
    for tensor in file.tensors:
        yield from tensor_parts(file, tensor)
        heading = f"Directory: tensor entry of {tensor.name}"
        yield table(s.TENSOR_ENTRY, tensor.entry.offset, heading)
    directory = header.directory_offset
    yield table(s.DIRECTORY_HEADER, directory, "Directory header")
    for record in file.records:
        yield table(s.DIRECTORY_REGION, record.offset, "Directory: region")
    order = directory + file.directory.region_order_offset
    order_bytes = bytes(data[order : order + 4 * len(file.records)])
    order_text = ", ".join(map(str, values("u32", order_bytes, len(file.records))))
    yield order, "Directory: region_order", list(rows(order, order_bytes, order_text))
    names = directory + file.directory.names_offset
    yield text(names, file.directory.names_length, "Directory: names")
    record = header.integrity_offset - 256
    yield record, "Commit record", [f"{record:04x}  a copy of the 256 bytes at 0000"]
    leaves = data[header.integrity_offset : header.integrity_offset + header.integrity_length]
    yield header.integrity_offset, "Integrity table", list(rows(header.integrity_offset, leaves, "leaf 0"))
    end = header.file_length - 32
    yield end, "Closing checksum", list(rows(end, data[end : end + 32], ""))


def annotate(data):
    """The whole text."""
    lines = []
    for _, heading, part in sorted(parts(Checkpoint(memoryview(data))), key=lambda part: part[0]):
        if heading:
            lines += ["", f"{heading}:"]
        lines += part
    return "\n".join(lines[1:]) + "\n"


if __name__ == "__main__":
    sys.stdout.write(annotate(pathlib.Path(sys.argv[1]).read_bytes()))
