"""Files that break the format: the witness refuses what docs/format/format.md says, and so does verify().

Usage: refusal_test.py WITNESS_FILES VERIFY_FILES
"""

import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

import digests
import samples
import structures as s
from reseal import reseal

from checkpoint import Checkpoint

WITNESS_FILES = sys.argv[1]


def setUpModule():
    samples.write(WITNESS_FILES)


def structures_of(data):
    """(layout, offset) of every structure in the file."""
    file = Checkpoint(memoryview(data))
    yield s.HEADER, 0
    directory = file.header.directory_offset
    yield s.DIRECTORY_HEADER, directory
    for record in file.records:
        yield s.DIRECTORY_REGION, record.offset
    for region in file.regions:
        yield s.REGION_INDEX_ENTRY, region.entry.offset
        yield s.REGION_HEADER, region.header.offset
        yield s.REGION_EXTENSION, region.extension.offset
        if region.header.homeostatic_offset:
            yield s.HOMEOSTATIC_HEADER, region.offset + region.header.homeostatic_offset
        if region.extension.dynamic_state_offset:
            yield s.DYNAMIC_STATE_HEADER, region.offset + region.extension.dynamic_state_offset
    for tensor in file.tensors:
        yield s.TENSOR_ENTRY, tensor.entry.offset
        header = s.CSR_HEADER if tensor.encoding == "csr" else s.TENSOR_HEADER
        yield header, tensor.entry.stored_offset - 32
        for chunk in tensor.chunks:
            yield s.CHUNK_ENTRY, chunk.place
    if file.connections:
        yield s.CONNECTIVITY_HEADER, file.header.connectivity_offset
        for number in range(len(file.connections)):
            yield s.CONNECTION_ENTRY, file.header.connectivity_offset + 32 + 96 * number


def changed_fields(choose, names):
    """(field, where it stands, the file with one bit of it changed and resealed) for the fields of
    up to 25 structures a sample."""
    for name in names:
        data = samples.data(name)
        places = list(structures_of(data))
        for layout, offset in choose.sample(places, min(len(places), 25)):
            ends = [*list(layout.offsets.values())[1:], layout.size]
            for (field, start), end in zip(layout.offsets.items(), ends, strict=True):
                if field in ("header_crc32", "directory_crc32"):
                    continue
                bit = choose.choice((0, choose.randrange((end - start) * 8)))
                broken = bytearray(data)
                broken[offset + start + bit // 8] ^= 1 << bit % 8
                where = f"{name}: {layout.section}.{field} of the structure at {offset}, bit {bit}"
                yield field, where, reseal(broken, data)


# Fields in which some or all other values are as legal as the one written.
FREE = {
    "minor_version",
    "patch_version",
    "flags",
    "timestamp",
    "training_steps",
    "generation",
    "file_uuid",
    "compatible_features",
    "n_inputs",
    "neuron_type",
    "timestamp_updated",
    "role",
    "name_offset",
    "name_length",
    "names_length",
}


class Refusal(unittest.TestCase):
    def refusal(self, data):
        """What the witness says of the bytes; None where it takes them."""
        try:
            Checkpoint(memoryview(data))
        except s.Refused as refused:
            return refused
        return None

    def test_resealing_a_sound_file_changes_nothing(self):
        for name in ("roles", "connections", "nothing"):
            self.assertEqual(reseal(samples.data(name)), samples.data(name))

    def test_every_flipped_byte_is_refused(self):
        data = samples.data("no_tensors")
        for at in range(len(data)):
            broken = bytearray(data)
            broken[at] ^= 1 << at % 8
            self.assertIsNotNone(self.refusal(bytes(broken)), f"byte {at}")

    def test_every_truncation_is_refused(self):
        data = samples.data("no_tensors")
        for length in range(len(data)):
            self.assertIsNotNone(self.refusal(data[:length]), f"{length} bytes")

    def test_debris_is_ignored(self):
        self.assertIsNone(self.refusal(samples.data("roles") + b"debris"))

    def test_every_field_is_held_to_its_rule_whatever_the_checksums_say(self):
        free = FREE if digests.xxhash else FREE | {"content_hash"}
        names = ("nothing", "roles", "connections", "sparse")
        cases = list(changed_fields(random.Random(1), names))
        for field, where, broken in cases:
            if field not in free:
                self.assertIsNotNone(self.refusal(broken), where)
        self.assertGreater(len(cases), 500)

    def test_verify_and_the_witness_agree_on_every_changed_field(self):
        names = ("nothing", "no_tensors", "roles", "connections", "sparse", "ranks", "streamed")
        with tempfile.TemporaryDirectory() as folder:
            expected, wheres, paths = [], [], []
            for field, where, broken in changed_fields(random.Random(2), names):
                if field == "content_hash" and not digests.xxhash:
                    continue
                path = pathlib.Path(folder, f"{len(paths)}.thalia")
                path.write_bytes(broken)
                paths.append(f"{path}\n")
                wheres.append(where)
                expected.append("sound" if self.refusal(broken) is None else "broken")
            pathlib.Path(folder, "paths").write_text("".join(paths))
            run = subprocess.run([WITNESS_FILES, "verdicts", folder], capture_output=True, text=True, check=True)
        verdicts = run.stdout.splitlines()
        self.assertEqual(len(verdicts), len(expected))
        self.assertIn("sound", expected)
        for where, witness, verdict in zip(wheres, expected, verdicts, strict=True):
            self.assertEqual(verdict.split("\t")[0], witness, f"{where}: {verdict}")

    def test_padding_and_order_are_held_to_their_rules(self):
        data = samples.data("roles")
        file = Checkpoint(memoryview(data))
        broken = bytearray(data)
        broken[file.regions[0].offset + 192 + len(file.regions[0].config)] = 1
        self.assertEqual(self.refusal(reseal(broken)).section, "padding")

        broken = bytearray(data)
        order = file.header.directory_offset + file.directory.region_order_offset
        broken[order : order + 4], broken[order + 4 : order + 8] = (
            data[order + 4 : order + 8],
            data[order : order + 4],
        )
        self.assertEqual(self.refusal(reseal(broken)).field, "region_order")

    def test_json_is_held_to_rfc_8259(self):
        data = samples.data("no_tensors")
        file = Checkpoint(memoryview(data))
        at = file.header.metadata_offset
        for text in (b"[]", b"{,}", b'{"a":NaN}', b'{"\xff":1}', b"\xef\xbb\xbf{}"):
            broken = bytearray(data)
            broken[at : at + file.header.metadata_length] = text.ljust(file.header.metadata_length)
            refused = self.refusal(reseal(broken))
            self.assertIsNotNone(refused, text)
            self.assertEqual(refused.section, "metadata")

    def test_major_version_and_unknown_features_are_unsupported(self):
        for field, value in (("major_version", b"\2\0"), ("incompatible_features", b"\1\0\0\0")):
            broken = bytearray(samples.data("nothing"))
            at = s.HEADER.offsets[field]
            broken[at : at + len(value)] = value
            refused = self.refusal(reseal(broken))
            self.assertEqual((refused.kind, refused.field), ("UnsupportedError", field))

    def test_newer_minor_version_is_read(self):
        newer = bytearray(samples.data("roles"))
        newer[s.HEADER.offsets["minor_version"]] = 9
        self.assertIsNone(self.refusal(reseal(newer)))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
