"""The published vectors read by the witness, which was written from docs/format/format.md alone.

Usage: witness_test.py, with the witness's folder in PYTHONPATH. Needs the packages xxhash,
zstandard and lz4, and is skipped (77) without them.
"""

import json
import pathlib
import sys
import unittest

import describe
import digests

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "data/vectors"
MANIFEST = json.loads((FOLDER / "manifest.json").read_text(encoding="utf-8"))


class Vectors(unittest.TestCase):
    maxDiff = None

    def test_valid_files_are_what_the_manifest_says(self):
        valid = FOLDER / "valid"
        for expected in MANIFEST["valid"]:
            path = valid / expected["file"]
            with self.subTest(file=expected["file"]):
                if expected["kind"] == "recoverable":
                    self.assertIsNotNone(describe.refusal(path))
                    continue
                self.assertIsNone(describe.refusal(path))
                self.assertEqual(describe.describe_valid(valid, path), expected)

    def test_refused_files_are_refused(self):
        for expected in MANIFEST["refused"]:
            with self.subTest(file=expected["file"]):
                refused = describe.refusal(FOLDER / "refused" / expected["file"], expected["with_base"])
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
