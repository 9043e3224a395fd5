"""make_vectors.py makes the published files, byte for byte, but for those that a compressor wrote,
of which another version may write others.

Usage: made_test.py WRITE_VALID, with the witness's folder in PYTHONPATH. Skipped (77) without the
packages xxhash, zstandard and lz4.
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import digests
import make_vectors

PUBLISHED = pathlib.Path(__file__).resolve().parents[1] / "data/vectors"
WRITE_VALID = sys.argv.pop(1)


def is_compressed(valid):
    """By the manifest, of a valid file."""
    if valid["kind"] == "wrapper":
        return True
    return any(codec != "none" for t in valid.get("tensors", []) for codec, _ in t["chunks"])


class Made(unittest.TestCase):
    def test_files_and_manifest_are_those_that_were_published(self):
        with tempfile.TemporaryDirectory() as folder:
            script = make_vectors.__file__
            subprocess.run([sys.executable, script, WRITE_VALID, folder], check=True)
            made = pathlib.Path(folder)
            manifest = json.loads((made / "manifest.json").read_text(encoding="utf-8"))
            compressed = {v["file"] for v in manifest["valid"] if is_compressed(v)}
            same = 0
            for kind in "valid", "refused":
                for entry in manifest[kind]:
                    if not compressed.isdisjoint((entry["file"], entry.get("of"))):
                        continue
                    name = f"{kind}/{entry['file']}"
                    with self.subTest(file=name):
                        found = (made / name).read_bytes()
                        self.assertEqual(found, (PUBLISHED / name).read_bytes())
                        same += 1
            self.assertGreater(same, 150)
            published = json.loads((PUBLISHED / "manifest.json").read_text(encoding="utf-8"))
            self.assertEqual(manifest["rules"], published["rules"])


if __name__ == "__main__":
    if None in (digests.xxhash, digests.zstandard, digests.lz4_frame):
        print("skipped: the Python packages xxhash, zstandard and lz4 are not all installed")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
