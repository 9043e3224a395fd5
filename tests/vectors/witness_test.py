"""The published vectors read by the witness, which was written from docs/format.md alone.

Usage: witness_test.py, with the witness's folder in PYTHONPATH. Needs the packages xxhash,
zstandard and lz4, and is skipped (77) without them.
"""

import json
import pathlib
import sys
import unittest

import digests
import make_vectors
import structures as s
from around import SideFile, unwrap, unwrapped
from chain import Chain, Link
from checkpoint import Checkpoint

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "data/vectors"
MANIFEST = json.loads((FOLDER / "manifest.json").read_text(encoding="utf-8"))


def refusal(path, with_base=False):
    """What the witness says of a file; None where it takes it."""
    data = path.read_bytes()
    try:
        if with_base:
            list(Chain(path).tensors())
        elif data[:4] == b"TMET":
            SideFile(data)
        elif unwrapped(data)[:4] == b"\xce\x94TH":
            check_delta(path)
        else:
            Checkpoint(memoryview(unwrapped(data)))
    except s.Refused as refused:
        return refused
    return None


def check_delta(path):
    """Without its base: what comes out cannot be looked at, but what is stored can."""
    for tensor in Link(path).file.tensors:
        if tensor.encoding in make_vectors.ALONE:
            make_vectors.ALONE[tensor.encoding](tensor, bytes(tensor.count * tensor.bits // 8))


class Vectors(unittest.TestCase):
    maxDiff = None

    def test_valid_files_are_what_the_manifest_says(self):
        valid = FOLDER / "valid"
        for expected in MANIFEST["valid"]:
            path = valid / expected["file"]
            with self.subTest(file=expected["file"]):
                if expected["kind"] == "recoverable":
                    self.assertIsNotNone(refusal(path))
                    continue
                self.assertIsNone(refusal(path))
                self.assertEqual(make_vectors.describe_valid(valid, path), expected)
                if expected["kind"] == "wrapper":
                    wrapped = (valid / expected["of"]).read_bytes()
                    self.assertEqual(unwrap(path.read_bytes()), wrapped)

    def test_refused_files_are_refused(self):
        for expected in MANIFEST["refused"]:
            with self.subTest(file=expected["file"]):
                refused = refusal(FOLDER / "refused" / expected["file"], expected["with_base"])
                if expected["severity"] == "warning":
                    self.assertIsNone(refused)
                else:
                    self.assertIsNotNone(refused)
                    self.assertEqual(refused.kind, expected["class"], refused)


if __name__ == "__main__":
    if None in (digests.xxhash, digests.zstandard, digests.lz4_frame):
        print("skipped: the Python packages xxhash, zstandard and lz4 are not all installed")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
