"""Valid files that no program of this project writes: as others write them, or as nobody has to."""

import hashlib
import struct
import types

import digests
import structures as s
from edits import Editor
from low_rank import apply_low_rank
from refused_around import with_checksums, without_table
from step_delta import StepDelta
from step_writer import coding, step_delta, symbol_of

SKIPPABLE = b"\x50\x2a\x4d\x18"


def skippable(content, magic=SKIPPABLE):
    return magic + struct.pack("<I", len(content)) + content


def frames_of(wrapped):
    """The frames of a file with a seek table, one by one."""
    count = struct.unpack_from("<I", wrapped, len(wrapped) - 9)[0]
    at, frames = 0, []
    for i in range(count):
        length = struct.unpack_from("<I", wrapped, len(wrapped) - 9 - 8 * (count - i))[0]
        frames.append(wrapped[at : at + length])
        at += length
    return frames


def add_others_frames(folder):
    """Frames as others write them: without a seek table; with checksums in it; with frames to skip."""
    for ending, magic in ("zst", b"\xb1\xea\x92\x8f"), ("lz4", b"TLZ4"):
        wrapped = (folder / f"pieces.thalia.{ending}").read_bytes()
        plain, frames = without_table(wrapped), frames_of(wrapped)

        def put(name, data, ending=ending):
            (folder / f"pieces_{name}.thalia.{ending}").write_bytes(data)

        put("plain", plain)
        put("checksums", with_checksums(wrapped))
        put("skippable", skippable(b"whatever this is", b"\x5f\x2a\x4d\x18") + plain)
        # As pzstd: before each frame its length.
        put("parallel", b"".join(skippable(struct.pack("<I", len(f))) + f for f in frames))
        # The last four bytes are those of a seek table, which is none: a frame to skip.
        put("by_chance", plain + skippable(struct.pack("<IB", 1, 0) + magic))


def single_tensor(editor, name, payload, chunks, logical):
    """Another payload for the only tensor of a file whose directory has entries for two chunks.
    chunks: (stored, raw length, codec, filter)."""
    tensor = editor.tensor(name)
    before, crc = tensor.entry, digests.crc32(logical)
    stored = b"".join(payload)
    editor.stored(name, 0, stored + bytes(before.stored_length - len(stored)), digest=False)
    at, place = before.stored_offset, tensor.chunks[0].place
    for content, (raw, codec, filter_) in zip(payload, chunks, strict=True):
        fields = (at, len(content), raw, digests.crc32(content), codec, filter_, 0)
        for i, byte in enumerate(struct.pack("<QIIIBBH", *fields)):
            editor.byte(place + i, byte)
        at, place = at + len(content), place + 24
    editor.shape(name, len(logical))
    editor.entry(
        name,
        logical_length=len(logical),
        stored_length=len(stored),
        chunk_count=len(chunks),
        crc32=crc,
        content_hash=digests.content_hash(logical),
    )
    editor.payload_header(name, shape=struct.pack("<3Q", len(logical), 1, 1), checksum=crc)
    grown, shrunk = len(logical) - before.logical_length, before.stored_length - len(stored)
    editor.record(0, logical_bytes=lambda n: n + grown, stored_bytes=lambda n: n - shrunk)
    editor.header(total_synapses=lambda n: n + grown)


def add_stored_chunks(folder):
    """Chunks as no writer has to make them: one that is stored, without a filter, and no other."""
    editor = Editor((folder / "lz4.thalia").read_bytes())
    tensor = editor.tensor("mixed")
    chunk = tensor.chunks[1]
    payload = editor.sound[chunk.offset : chunk.offset + chunk.raw_length]
    for i in range(24):
        editor.byte(chunk.place + i, 0)
    single_tensor(editor, "mixed", [payload], [(len(payload), 0, 0)], payload)
    (folder / "stored_chunks.thalia").write_bytes(editor.sealed())


def planes(words, width):
    return b"".join(words[k::width] for k in range(width))


def differences(words, width):
    whole = [int.from_bytes(words[i : i + width], "little") for i in range(0, len(words), width)]
    changes = [(b - a) % (1 << 8 * width) for a, b in zip([0, *whole[:-1]], whole, strict=True)]
    return b"".join(change.to_bytes(width, "little") for change in changes)


def rotated(word, width):
    number = int.from_bytes(word, "little")
    return (number << 1 | number >> (8 * width - 1)) % (1 << 8 * width)


def add_tails(folder):
    """Chunks whose length is no multiple of a word's, under the filters and in our own codecs."""
    sound = (folder / "stored_chunks.thalia").read_bytes()
    logical = hashlib.sha256(b"tails").digest() * 4
    first, second = logical[:64], logical[64:125]
    # 61 bytes are 15 words of 4 and one byte, and 7 words of 8 and five bytes.
    filtered = [
        planes(second[:60], 4) + second[60:],
        planes(differences(second[:56], 8), 8) + second[56:],
    ]
    for name, filter_, tail in ("byte_planes_4", 2, filtered[0]), ("difference_planes_8", 5, filtered[1]):
        editor = Editor(sound)
        single_tensor(editor, "mixed", [first, tail], [(64, 0, 0), (61, 0, filter_)], logical[:125])
        (folder / f"tail_{name}.thalia").write_bytes(editor.sealed())
    words = bytes([1, 2, 3, 0x84]) * 31
    logical = words + b"\x81\x82\x83"
    other = bytes([1, 2, 3, 0x34]) + logical[4:]  # its highest byte has no code
    numbers = rotated(words[:4], 4).to_bytes(4, "little")
    entropy = struct.pack("<BBH", 4, 1, 0)
    entropy += b"".join(struct.pack("<BBHI", 1, byte, 0, 0) for byte in numbers) + logical[-3:]
    escaped = rotated(other[:4], 4).to_bytes(4, "little")
    exponents = struct.pack("<BBBBIBQ", 4, 8, 1, 0, 1, numbers[3], 1)
    exponents += b"".join(escaped[k : k + 1] + numbers[k : k + 1] * 30 for k in range(3)) + logical[-3:] + escaped[3:]
    for name, codec, content, raw in ("plane_entropy", 3, entropy, logical), ("packed_exponents", 4, exponents, other):
        editor = Editor(sound)
        single_tensor(editor, "mixed", [content], [(127, codec, 0)], raw)
        (folder / f"tail_{name}.thalia").write_bytes(editor.sealed())


def add_no_config(folder):
    editor = Editor((folder / "minimal.thalia").read_bytes())
    region = editor.file.regions[0]
    for i in range(region.header.config_length):
        editor.byte(region.offset + 192 + i, 0)
    editor.region(0, config_offset=0, config_length=0, n_neurons=2)
    editor.header(total_neurons=2)
    (folder / "no_config.thalia").write_bytes(editor.sealed())


def add_negative_zeros(folder):
    """-0.0 is not negative: as the largest error, and as the scale of a group of no bits."""
    editor = Editor((folder / "quantized.thalia").read_bytes())
    editor.side("w", max_error=struct.pack("<d", -0.0), rms_error=struct.pack("<d", -0.0))
    (folder / "quantized_negative_zero.thalia").write_bytes(editor.sealed())


def add_clamped(folder):
    """Parameters with which codes stand for more than the type's largest number."""
    editor = Editor((folder / "quantized_types.thalia").read_bytes())
    for name, minimum, scale in ("f16", 65000.0, 40.0), ("bf16", -3.4028e38, 1e34), ("f32", 3.4e38, 2e36):
        tensor = editor.tensor(name)
        quantized = tensor.quantized
        editor.stored(name, quantized.minima_at, struct.pack("<f", minimum), digest=False)
        editor.stored(name, quantized.scales_at, struct.pack("<f", scale))
        begin = tensor.entry.stored_offset
        quantized.side.require = lambda *_: None  # its digests are what is made here
        made = bytes(quantized.restore(editor.data[begin : begin + tensor.entry.stored_length]))
        editor.side(name, crc32=digests.crc32(made), content_hash=digests.content_hash(made))
    (folder / "quantized_clamped.thalia").write_bytes(editor.sealed())


def add_low_rank_clamped(folder):
    """Factors whose product no f64 holds, nor the type what comes out."""
    editor = Editor((folder / "small.delta.thalia").read_bytes())
    tensor = editor.tensor("low_rank")
    rank = struct.unpack_from("<I", tensor.data)[0]
    parameters = s.align(64 + rank, 8)
    editor.stored("low_rank", parameters, struct.pack("<4d", 1e300, 0.0, -1e300, 0.0))
    begin = editor.start + tensor.entry.stored_offset
    data = bytes(editor.data[begin : begin + tensor.entry.stored_length])
    base = Editor((folder / "small_base.thalia").read_bytes()).tensor("low_rank")
    changed = types.SimpleNamespace(shape=tensor.shape, dtype=tensor.dtype, data=data)
    made = apply_low_rank(changed, bytes(base.data))
    editor.side("low_rank", crc32=digests.crc32(made), content_hash=digests.content_hash(made))
    (folder / "low_rank_clamped.delta.thalia").write_bytes(editor.sealed())


def list_in_place_of_steps(folder):
    """A list of bytes in three blocks, of which the library would store steps."""
    path = folder / "changed.delta.thalia"
    editor = Editor(path.read_bytes())
    tensor = editor.tensor("blocks")
    old = bytes(Editor((folder / "changed_base.thalia").read_bytes()).tensor("blocks").data)
    new = StepDelta("u8", len(old), tensor.data).apply(old)
    places = [i for i, pair in enumerate(zip(old, new, strict=True)) if pair[0] != pair[1]]
    blocks = -(-len(old) // 65536)
    pointers = [sum(place < 65536 * b for place in places) for b in range(blocks + 1)]
    payload = struct.pack(f"<{blocks + 1}Q", *pointers)
    payload += b"".join(struct.pack("<H", place % 65536) for place in places) + bytes(new[i] for i in places)
    before = tensor.entry.stored_length
    editor.stored("blocks", 0, payload.ljust(before, b"\0"), digest=False)
    crc, grown = digests.crc32(payload), len(payload) - before
    editor.entry(
        "blocks",
        encoding=6,
        nnz=len(places),
        logical_length=len(payload),
        stored_length=len(payload),
        crc32=crc,
        content_hash=digests.content_hash(payload),
    )
    editor.payload_header("blocks", checksum=crc)

    def plus(number):
        return number + grown

    editor.record(0, logical_bytes=plus, stored_bytes=plus)
    # It is the last of its region.
    editor.index(0, data_length=plus)
    editor.extension(0, other_length=plus)
    path.write_bytes(editor.sealed())


def moved(payload, elements, steps):
    """Elements after steps, of those that their tables have."""
    out = []
    for i, element in enumerate(elements):
        step = steps[i % len(steps)]
        has_it = payload.alphabet(element).frequencies[symbol_of(step, payload.bits)[0]]
        out.append(payload.element((payload.ordinal(element) + step * bool(has_it)) % (1 << payload.bits)))
    return out


def add_steps(folder):
    """What no writer has to choose: explicit tables, short chunks, lanes without an element, any first_class."""
    sound = (folder / "steps.delta.thalia").read_bytes()
    old = struct.unpack("<5000H", Editor((folder / "steps_base.thalia").read_bytes()).tensor("chunks").data)
    every = ((5, 3), (3, 1), (2, 0), (1, 0), (4, 7), (2, 1), (1, 0), (1, 0))
    some = ((12, 7), (11, 1), (9, 0), (8, 5), (6, 3), (0, 0), (0, 0), (3, 2))
    few, many = [0] * 60, (0, 1, 0, -2, 0, 3, 0, 0, -1, 0)
    few[7::9] = (5, -12, 20, -63, 40000, 1)
    for name, header, classes, steps in (
        ("tables", (255, 100, 1, 12), (None, every, some, None, every), few),
        ("one_table", (255, 0, 5, 13), (some,), many),
        ("level", (30, 130, 3, 12), None, few),
        ("wide", (0, 0, 0, 24), None, few),
    ):
        new = moved(coding("bf16", 5000, header, classes), old, steps)
        payload, made = step_delta("bf16", old, new, header, classes), struct.pack("<5000H", *new)
        editor = Editor(sound)
        shrunk = editor.tensor("chunks").entry.stored_length - len(payload)
        assert shrunk >= 0, (name, shrunk)
        editor.stored("chunks", 0, payload + bytes(shrunk), digest=False)
        crc, content_hash = digests.crc32(payload), digests.content_hash(payload)
        length = {"logical_length": len(payload), "stored_length": len(payload)}
        editor.entry("chunks", **length, crc32=crc, content_hash=content_hash)
        editor.payload_header("chunks", checksum=crc)
        editor.side("chunks", crc32=digests.crc32(made), content_hash=digests.content_hash(made))
        editor.record(0, **dict.fromkeys(("logical_bytes", "stored_bytes"), lambda n, s=shrunk: n - s))
        (folder / f"steps_{name}.delta.thalia").write_bytes(editor.sealed())


def with_path(delta, path):
    """A delta with another path to its base."""
    reference = s.DELTA_REFERENCE.read(delta, 64)
    container = delta[reference.container_offset :]
    start = s.align(128 + len(path), 4096)
    data = bytearray(delta[:128] + path + bytes(start - 128 - len(path)))
    struct.pack_into("<I", data, 64 + 0x34, len(path))
    struct.pack_into("<Q", data, 64 + 0x08, start)
    field = 64 + s.DELTA_REFERENCE.offsets["crc32"]
    struct.pack_into("<I", data, field, digests.crc32_without(bytes(data), field))
    return bytes(data) + container


def add_paths(folder):
    """Bases that are found under the last part of the path; and a path that fills the page."""
    near = (folder / "near.delta.thalia").read_bytes()
    (folder / "moved.delta.thalia").write_bytes(with_path(near, b"gone/for/good/near_base.thalia"))
    base = b"near_base.thalia"
    full = b"./" * ((4096 - 128 - len(base)) // 2) + base
    assert (128 + len(full)) % 4096 == 0
    (folder / "full_page.delta.thalia").write_bytes(with_path(near, full))


def add_all(folder):
    for add in (
        add_others_frames,
        add_stored_chunks,
        add_tails,
        add_no_config,
        add_negative_zeros,
        add_clamped,
        add_low_rank_clamped,
        add_steps,
        list_in_place_of_steps,
        add_paths,
    ):
        add(folder)
