"""A packed delta and the bytes that it stands for, from docs/format/packed.md alone."""

import hashlib
import struct

import digests
import structures as s
from structures import Refused, align

PAGE, MOST_CONTENTS = 4096, 1 << 26
DENSE, CSR, COO, QUANTIZED, SAME, XOR, LIST, LOW_RANK, STEPS = range(9)
PIECES = {0: 0, 9: 0, 10: 0, 11: 0, 1: 1, 2: 2, 3: 2, 4: 2, 5: 2, 6: 3, 7: 3, 8: 3}  # by role
BITS = [32, 16, 8, 64, 16, 16, 32, 64, 8, 16, 32, 64, 8, 8, 8, 8, 8, 8, 6, 6, 4, 4, 4, 2, 2, 2, 1, 64, 128]
ALIGNMENT = [4, 2, 1, 8, 2, 2, 4, 8, 1, 2, 4, 8, *[1] * 14, 1, 4, 8]


def refuse(field, value, expected, kind="FormatError"):
    raise Refused(kind, "wrapper", field, 0, value, expected)


def packed_struct(layout, **values):
    """The bytes of a structure; fields that are not given are zero."""
    out = b""
    for name, part, single in layout.parts:
        value = values.pop(name, None)
        if value is None:
            out += bytes(part.size)
        else:
            out += part.pack(value) if single else part.pack(*value)
    if values:
        raise ValueError(f"no fields {list(values)}")
    return out


class Columns:
    def __init__(self, data, field):
        self.data, self.at, self.field = bytes(data), 0, field

    def take(self, count):
        if count > len(self.data) - self.at:
            refuse(self.field, "the end", f"{count} bytes more")
        self.at += count
        return self.data[self.at - count : self.at]

    def number(self):
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 127) << shift
            if byte < 128:
                break
            shift += 7
        if value >= 1 << 64 or (byte == 0 and shift):
            refuse(self.field, value, "a number in its shortest form")
        return value

    def numbers(self, count):
        if count > len(self.data) - self.at:
            refuse(self.field, count, "as many as there are")
        return [self.number() for _ in range(count)]

    def text(self):
        return self.take(self.number())

    def texts(self, count):
        return [self.text() for _ in range(count)]

    def name(self):
        end = self.data.find(b"\xff", self.at)
        if end < 0:
            refuse(self.field, "a name", "its end")
        return self.take(end + 1 - self.at)[:-1]


class Made:
    """One tensor: what the head says of it, and what follows."""

    def __init__(self, region, name, role):
        self.region, self.name, self.role = region, name, role
        self.nnz = self.length = self.wide = 0
        self.side = self.quantized = None
        self.payload = b""
        self.chunks, self.raw = [], 0

    @property
    def count(self):
        count = 1
        for extent in self.shape:
            count *= extent
        return count

    def array_length(self, encoding, nnz, wide):
        """Logical bytes of a dense, csr or coo tensor."""
        if encoding == DENSE:
            return -(-self.count * BITS[self.dtype] // 8)
        indices = self.shape[0] + 1 + nnz if encoding == CSR else len(self.shape) * nnz
        return align(indices * (8 if wide else 4), ALIGNMENT[self.dtype]) + nnz * BITS[self.dtype] // 8

    def derive(self):
        if self.side:
            self.side["logical_length"] = self.array_length(
                self.side["encoding"], self.side["nnz"], self.side["flags"] & 1
            )
        if self.encoding <= COO:
            self.length = self.array_length(self.encoding, self.nnz, self.wide)
        elif self.encoding == XOR:
            self.length = self.side["logical_length"]
        elif self.encoding == LIST:
            positions = (-(-self.count // 65536) + 1) * 8
            self.length = align(positions + self.nnz * 2, ALIGNMENT[self.dtype]) + self.nnz * BITS[self.dtype] // 8
        self.stored = sum(stored for stored, _, _ in self.chunks) if self.chunks else self.length

    def header(self):
        """The 32 bytes before the payload."""
        if self.encoding == CSR:
            return packed_struct(
                s.CSR_HEADER,
                dtype=self.dtype,
                n_rows=self.shape[0],
                n_cols=self.shape[1],
                nnz=self.nnz,
                checksum=self.crc,
            )
        shape = [*self.shape, 1, 1, 1][:3]
        for extent in self.shape[3:]:
            shape[2] *= extent
        shape[2] = min(shape[2], (1 << 64) - 1)
        mark = {COO: 1, QUANTIZED: 2}.get(self.encoding, 0)
        return packed_struct(
            s.TENSOR_HEADER, dtype=self.dtype, ndim=len(self.shape), reserved=mark, shape=shape, checksum=self.crc
        )


def short_name(name):
    if len(name) <= 31:
        return name
    cut = name[:22].decode("utf-8", "ignore").encode()
    return cut + b"~" + hashlib.sha256(name).hexdigest()[:8].encode()


class Head:
    def __init__(self, data):
        c = self.columns = Columns(data, "head")
        self.log2, self.leaves, self.timestamp, self.steps, self.base_step = c.numbers(5)
        self.base_length, self.base_generation, self.depth = c.numbers(3)
        self.path, self.metadata = c.texts(2)
        regions, connections, named = c.numbers(3)
        self.names = c.texts(regions)
        self.numbers = [c.numbers(5) for _ in range(regions)]
        self.configs, self.texts = c.texts(regions), c.texts(regions)
        self.connections = [c.numbers(3) for _ in range(connections)]
        if sum(numbers[4] for numbers in self.numbers) != named:
            refuse("head", named, "the tensors of all regions")
        names = iter([c.name() for _ in range(named)])
        roles = iter(c.numbers(named))
        self.tensors = [Made(r, next(names), next(roles)) for r, n in enumerate(self.numbers) for _ in range(n[4])]
        for tensor in self.tensors:
            if tensor.name[:1] == b"\xfe":
                tensor.name = self.names[tensor.region] + tensor.name[1:]
        for i, (_, _, delays) in enumerate(self.connections):
            self.tensors.append(Made(None, f"{i}.weights".encode(), 0))
            if delays:
                self.tensors.append(Made(None, f"{i}.delays".encode(), 8))
        self.read_tensors(c)
        if c.at != len(c.data):
            refuse("head", len(c.data), c.at)

    def column(self, name, wanted=lambda tensor: True):
        for tensor in self.tensors:
            if wanted(tensor):
                setattr(tensor, name, self.columns.number())

    def read_tensors(self, c):
        for name in ("encoding", "dtype", "wide", "rank"):
            self.column(name)
        for tensor in self.tensors:
            if tensor.encoding > STEPS or tensor.dtype >= len(BITS) or tensor.rank > 8:
                refuse("head", (tensor.encoding, tensor.dtype, tensor.rank), "codes that are listed")
            tensor.shape = c.numbers(tensor.rank)
        self.column("nnz", lambda t: t.encoding in (CSR, COO, LIST))
        self.column("length", lambda t: t.encoding == QUANTIZED or t.encoding > LIST)
        changed = [t for t in self.tensors if t.encoding >= SAME]
        for tensor in changed:
            tensor.side = {"encoding": c.number(), "flags": c.number(), "nnz": 0}
        for tensor in changed:
            if tensor.side["encoding"]:
                tensor.side["nnz"] = c.number()
        for tensor in self.tensors:
            if tensor.encoding == QUANTIZED:
                tensor.quantized = c.take(64)
        counts = c.numbers(len(self.tensors))
        for tensor, count in zip(self.tensors, counts, strict=True):
            if count:
                tensor.raw = c.number()
        for tensor, count in zip(self.tensors, counts, strict=True):
            tensor.chunks = [tuple(c.numbers(3)) for _ in range(count)]
            tensor.derive()
        steps = [t for t in self.tensors if t.encoding == STEPS and not t.chunks]
        columns = [c.take(len(steps)) for _ in range(4)]
        for tensor, total, first_class, lanes, chunk in zip(steps, *columns, strict=True):
            if tensor.length < 4:
                refuse("head", tensor.length, "4 or more")
            tensor.payload = bytes([(total - 2 * first_class) % 256, first_class, lanes, chunk])

    def read_digests(self, data):
        c = Columns(data, "digests")
        self.closing, self.base_checksum = c.take(32), c.take(32)
        self.uuid, self.base_uuid, self.prefix_crc = c.take(16), c.take(16), c.take(4)
        for tensor in self.tensors:
            if tensor.side:
                tensor.side["content_hash"] = c.take(16)
        for tensor in self.tensors:
            if tensor.side and not tensor.side["flags"] & 2:
                tensor.side["crc32"] = int.from_bytes(c.take(4), "little")
                tensor.side["base_content_hash"] = c.take(16)
        for tensor in self.tensors:
            if tensor.chunks:
                tensor.crc, tensor.hash = int.from_bytes(c.take(4), "little"), c.take(16)
        return c.at

    def read_payloads(self, data):
        for tensor in self.tensors:
            length = tensor.stored - len(tensor.payload)
            if length > len(data):
                refuse("payloads", len(data), length)
            tensor.payload += bytes(data[:length])
            data = data[length:]
            if not tensor.chunks:
                tensor.crc, tensor.hash = digests.crc32(tensor.payload), digests.content_hash(tensor.payload)
        if len(data):
            refuse("payloads", len(data), "the end")


class Contents:
    """The container, made of a head."""

    def __init__(self, head):
        self.head = head
        self.data = bytearray(256)
        self.metadata_at = self.put(head.metadata)
        self.extents = [self.region(r) for r in range(len(head.names))]
        self.connectivity = self.connections()
        directory_at, directory = self.put_at(64, self.directory())
        index = b"".join(
            packed_struct(s.REGION_INDEX_ENTRY, region_name=short_name(name), data_offset=at, data_length=length)
            for name, (at, length) in zip(head.names, self.extents, strict=True)
        )
        index_at = self.put_at(64, index)[0] if index else 0
        self.seal(directory_at, len(directory), index_at, len(index))

    def put(self, data):
        at = len(self.data)
        self.data += data
        return at

    def put_at(self, alignment, data):
        self.data += bytes(align(len(self.data), alignment) - len(self.data))
        return self.put(data), data

    def payload(self, tensor):
        """The offset of the payload's header."""
        at = align(len(self.data) + 32, PAGE if tensor.length >= 65536 else 64)
        self.data += bytes(at - 32 - len(self.data)) + tensor.header() + tensor.payload
        tensor.at = at
        return at - 32

    def region(self, r):
        head = self.head
        n_neurons, n_inputs, neuron_type, updated, _ = head.numbers[r]
        start, _ = self.put_at(64, bytes(192))
        config = self.put(head.configs[r]) - start
        own = [t for t in head.tensors if t.region == r]
        keys = [(PIECES[t.role], t.role if PIECES[t.role] == 2 else 0) for t in own]
        if keys != sorted(keys):
            refuse("roles", keys, "in the order of the file")
        first, places = {}, {}
        for piece in range(4):
            part = [t for t in own if PIECES[t.role] == piece]
            if not part:
                continue
            begin = None
            if piece == 1:
                begin = align(len(self.data) + 48, 64) - 48
                self.data += bytes(begin - len(self.data))
                self.put(packed_struct(s.HOMEOSTATIC_HEADER, n_neurons=n_neurons, timestamp_updated=updated))
            elif piece == 2:
                begin, _ = self.put_at(64, bytes(32))
            for tensor in part:
                at = self.payload(tensor)
                begin = at if begin is None else begin
                first.setdefault(tensor.role, at - start)
            places[piece] = (begin - start, len(self.data) - begin)
            if piece == 2:
                self.data[begin : begin + 32] = packed_struct(
                    s.DYNAMIC_STATE_HEADER,
                    has_region_state=2 in first,
                    has_learning_state=3 in first,
                    has_oscillators=4 in first,
                    has_neuromodulators=5 in first,
                    region_state_offset=first.get(2, 0),
                    learning_state_offset=first.get(3, 0),
                )
        text = head.texts[r]
        text_at = self.put_at(64, text)[0] - start if text else 0
        weights = [t for t in own if PIECES[t.role] == 0]
        csr = bool(weights) and (weights[0].side or {"encoding": weights[0].encoding})["encoding"] == CSR
        none = (0, 0)
        self.data[start : start + 64] = packed_struct(
            s.REGION_HEADER,
            n_neurons=n_neurons,
            n_inputs=n_inputs,
            neuron_type=neuron_type,
            encoding_type=csr,
            config_offset=config,
            config_length=len(head.configs[r]),
            weights_offset=places.get(0, none)[0],
            weights_length=places.get(0, none)[1],
            homeostatic_offset=places.get(1, none)[0],
            homeostatic_length=places.get(1, none)[1],
        )
        self.data[start + 64 : start + 192] = packed_struct(
            s.REGION_EXTENSION,
            extension_length=128,
            dynamic_state_offset=places.get(2, none)[0],
            dynamic_state_length=places.get(2, none)[1],
            oscillator_offset=first.get(4, 0),
            neuromodulator_offset=first.get(5, 0),
            region_metadata_offset=text_at,
            region_metadata_length=len(text),
            other_offset=places.get(3, none)[0],
            other_length=places.get(3, none)[1],
        )
        return start, len(self.data) - start

    def connections(self):
        head = self.head
        if not head.connections:
            return 0, 0
        start, _ = self.put_at(64, packed_struct(s.CONNECTIVITY_HEADER, num_connections=len(head.connections)))
        entries = self.put(bytes(96 * len(head.connections)))
        matrices = iter(t for t in head.tensors if t.region is None)
        for i, (source, target, delays) in enumerate(head.connections):
            spans = []
            for _ in range(1 + delays):
                tensor = next(matrices)
                spans.append((self.payload(tensor) - start, tensor.stored + 32))
            spans += [(0, 0)] * (1 - delays)
            self.data[entries + 96 * i : entries + 96 * i + 96] = packed_struct(
                s.CONNECTION_ENTRY,
                source_region=short_name(head.names[source]),
                target_region=short_name(head.names[target]),
                weight_offset=spans[0][0],
                weight_length=spans[0][1],
                delay_offset=spans[1][0],
                delay_length=spans[1][1],
            )
        return start, len(self.data) - start

    def directory(self):
        head = self.head
        owners = list(enumerate(head.names)) + ([(None, b"")] if head.connections else [])
        names = side = regions = entries = chunks = b""
        count = chunk_count = 0
        for number, name in owners:
            run = sorted((t for t in head.tensors if t.region == number), key=lambda t: t.name)
            regions += packed_struct(
                s.DIRECTORY_REGION,
                name_offset=len(names),
                name_length=len(name),
                flags=number is None,
                first_tensor=count,
                tensor_count=len(run),
                logical_bytes=sum(t.length for t in run),
                stored_bytes=sum(t.stored for t in run),
            )
            names += name
            count += len(run)
            for tensor in run:
                own = tensor.quantized or b""
                if tensor.side:
                    own = packed_struct(s.DELTA_TENSOR, **tensor.side)
                entries += packed_struct(
                    s.TENSOR_ENTRY,
                    name_offset=len(names),
                    name_length=len(tensor.name),
                    role=tensor.role,
                    encoding=tensor.encoding,
                    dtype=tensor.dtype,
                    ndim=tensor.rank,
                    flags=tensor.wide,
                    crc32=tensor.crc,
                    logical_length=tensor.length,
                    stored_offset=tensor.at,
                    stored_length=tensor.stored,
                    first_chunk=chunk_count if tensor.chunks else 0,
                    chunk_count=len(tensor.chunks),
                    nnz=tensor.nnz,
                    content_hash=tensor.hash,
                    side_data_offset=len(side) if own else 0,
                    side_data_length=len(own),
                    shape=[*tensor.shape, *[0] * 8][:8],
                )
                names += tensor.name
                side += own
                at, left = 0, tensor.length
                for stored, codec, filtered in tensor.chunks:
                    raw = min(tensor.raw, left)
                    chunks += packed_struct(
                        s.CHUNK_ENTRY,
                        offset=tensor.at + at,
                        stored_length=stored,
                        raw_length=raw,
                        crc32=digests.crc32(tensor.payload[at : at + stored]),
                        codec=codec,
                        filter=filtered,
                    )
                    at, left, chunk_count = at + stored, left - raw, chunk_count + 1
        order = sorted(range(len(owners)), key=lambda i: owners[i][1])
        parts, offsets, at = [regions, struct.pack(f"<{len(order)}I", *order), entries, chunks, names, side], [], 128
        body = b""
        for part in parts:
            body += bytes(align(at, 8) - at)
            at = align(at, 8)
            offsets.append(at)
            body += part
            at += len(part)
        header = packed_struct(
            s.DIRECTORY_HEADER,
            magic=b"TDIR",
            directory_version=1,
            region_count=len(owners),
            tensor_count=count,
            chunk_count=chunk_count,
            regions_offset=offsets[0],
            region_order_offset=offsets[1],
            tensors_offset=offsets[2],
            chunks_offset=offsets[3],
            names_offset=offsets[4],
            names_length=len(names),
            side_data_offset=offsets[5],
            side_data_length=len(side),
        )
        return with_crc(header, s.DIRECTORY_HEADER.offsets["directory_crc32"]) + body

    def flags(self):
        tensors, flags = self.head.tensors, 1 << 6
        results = [t.side["encoding"] if t.side else t.encoding for t in tensors]
        dtypes = {t.dtype for t in tensors}
        for bit, holds in enumerate(
            (
                any(t.chunks for t in tensors),
                any(codec == 2 for t in tensors for _, codec, _ in t.chunks),
                any(t.role == 1 for t in tensors),
                any(t.role == 5 for t in tensors),
                any(encoding in (CSR, COO) for encoding in results),
                0 in dtypes and bool(dtypes & {1, 4}),
            )
        ):
            flags |= int(holds) << bit
        return flags

    def synapses(self):
        def stored_elements(tensor):
            if tensor.side:
                return tensor.side["nnz"] if tensor.side["encoding"] else tensor.count
            return tensor.nnz if tensor.encoding in (CSR, COO) else tensor.count

        return sum(stored_elements(t) for t in self.head.tensors if t.role == 0)

    def seal(self, directory_at, directory_length, index_at, index_length):
        head = self.head
        record, _ = self.put_at(64, bytes(256))
        integrity = record + 256
        algorithm = s.LEAF_ALGORITHMS[head.leaves]
        blocks = -(-integrity >> head.log2)
        table = blocks * digests.leaf_length(algorithm)
        header = packed_struct(
            s.HEADER,
            magic=b"THAL",
            major_version=1,
            flags=self.flags(),
            timestamp=head.timestamp,
            metadata_offset=self.metadata_at,
            metadata_length=len(head.metadata),
            region_index_offset=index_at,
            region_index_length=index_length,
            connectivity_offset=self.connectivity[0],
            connectivity_length=self.connectivity[1],
            total_neurons=sum(numbers[0] for numbers in head.numbers),
            total_synapses=self.synapses(),
            training_steps=head.steps,
            num_regions=len(head.names),
            checksum_type=3,
            file_length=integrity + table + 32,
            directory_offset=directory_at,
            directory_length=directory_length,
            integrity_offset=integrity,
            integrity_length=table,
            generation=1,
            file_uuid=head.uuid,
            base_checksum=head.base_checksum,
            base_step=head.base_step,
            integrity_block_log2=head.log2,
            leaf_algorithm=head.leaves,
        )
        header = with_crc(header, s.HEADER.offsets["header_crc32"])
        self.data[record:integrity] = header
        leaves = b""
        for start in range(0, integrity, 1 << head.log2):
            leaves += digests.leaf(algorithm, bytes(self.data[start : min(start + (1 << head.log2), integrity)]))
        self.data[:256] = header
        self.data += leaves
        closing = digests.closing_checksum(s.HEADER.read(self.data, 0), self.data, algorithm)
        if closing != head.closing:
            refuse("closing_checksum", closing.hex(" "), head.closing.hex(" "), "IntegrityError")
        self.data += closing


def with_crc(data, at):
    return data[:at] + digests.crc32_without(data, at).to_bytes(4, "little") + data[at + 4 :]


def prefix_of(head):
    """What is before the container."""
    start = align(128 + len(head.path), PAGE)
    header = packed_struct(
        s.DELTA_HEADER,
        magic=b"\xce\x94THL",
        delta_version=2,
        base_checkpoint_hash=head.base_checksum,
        base_step=head.base_step,
        current_step=head.steps,
    )
    reference = packed_struct(
        s.DELTA_REFERENCE,
        reference_length=64,
        container_offset=start,
        base_length=head.base_length,
        base_generation=head.base_generation,
        base_uuid=head.base_uuid,
        depth=head.depth,
        path_length=len(head.path),
    )
    at = 64 + s.DELTA_REFERENCE.offsets["crc32"]
    prefix = with_crc(header + reference + head.path + bytes(start - 128 - len(head.path)), at)
    if prefix[at : at + 4] != head.prefix_crc:
        refuse("crc32", prefix[at : at + 4].hex(" "), head.prefix_crc.hex(" "), "IntegrityError")
    return prefix


def is_packed(data):
    return bytes(data[:4]) == b"TPAK"


def read_head(data):
    """The head, with digests and payloads."""
    header = s.PACKED_HEADER.read(data, 0)
    header.require("packed_version", header.packed_version == 1, 1, "UnsupportedError")
    header.require("contents_length", len(data) < header.contents_length <= MOST_CONTENTS, "more than the file has")
    end = 16 + header.frame_length
    header.require("frame_length", header.frame_length >= 1 and end <= len(data), len(data) - 16)
    frame = bytes(data[16:end])
    try:
        size = digests.zstandard.get_frame_parameters(frame).content_size
        decoded = digests.decode_zstd(frame, size) if size < header.contents_length else None
    except Exception as error:  # the package has exception classes of its own
        refuse("head", error, "a frame that decodes")
    if decoded is None:
        refuse("head", size, f"less than {header.contents_length}")
    head = Head(decoded)
    end += head.read_digests(data[end:])
    head.read_payloads(data[end:])
    return header, head


def unpack(data):
    """The delta that was packed."""
    header, head = read_head(data)
    contents = prefix_of(head) + bytes(Contents(head).data)
    header.require("contents_length", header.contents_length == len(contents), len(contents))
    return contents
