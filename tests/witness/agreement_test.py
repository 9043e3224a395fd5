"""The witness against what the library writes: it finds the same, and the document shows the same.

Usage: agreement_test.py WITNESS_FILES plain|packages
plain needs nothing but the standard library; packages needs xxhash, zstandard and lz4, and is
skipped (77) without them.
"""

import json
import pathlib
import re
import subprocess
import sys
import unittest
import uuid

import digests
import samples
import source_walk
import structures as s
from annotate import annotate
from regions import PIECES

from checkpoint import Checkpoint

HERE = pathlib.Path(__file__).resolve().parent
WITNESS_FILES, PART = sys.argv[1:3]
PLAIN_FILES = 19  # at least; so that an empty folder does not pass


def setUpModule():
    samples.write(WITNESS_FILES)


def needs_packages(path):
    return any(codec in path.name for codec in s.CODECS)


def run_witness(path, *arguments, isolated):
    flags = ["-I", "-S"] if isolated else []
    command = [sys.executable, *flags, str(HERE / "read_thalia.py"), str(path), *arguments]
    if isolated:  # -I takes the script's folder out of the path as well
        start = f"import sys; sys.path.insert(0, {str(HERE)!r}); import read_thalia"
        command = [*command[:3], "-c", f"{start}; read_thalia.main()", *command[4:]]
    return subprocess.run(command, capture_output=True, text=True)


class Agreement(unittest.TestCase):
    maxDiff = None

    def compare(self, path, found):
        expected = json.loads(path.with_suffix(".expected.json").read_text(encoding="utf-8"))
        expected["file_uuid"] = str(uuid.UUID(hex=expected["file_uuid"]))
        for name in expected.keys() - {"tensors"}:
            self.assertEqual(found[name], expected[name], name)

        def by_name(tensors):
            return {(t["region"], t["name"]): t for t in tensors}

        in_file, written = by_name(found["tensors"]), by_name(expected["tensors"])
        self.assertEqual(in_file.keys(), written.keys())
        for key, tensor in written.items():
            self.assertEqual(in_file[key] | tensor, in_file[key], key)

    @unittest.skipUnless(PART == "plain", "the other part")
    def test_standard_library_alone_finds_what_was_written(self):
        plain = [path for path in samples.paths() if not needs_packages(path)]
        self.assertGreaterEqual(len(plain), PLAIN_FILES)
        for path in plain:
            with self.subTest(file=path.name):
                run = run_witness(path, "--json", isolated=True)
                self.assertEqual(run.returncode, 0, run.stderr)
                self.compare(path, json.loads(run.stdout))

    @unittest.skipUnless(PART == "plain", "the other part")
    def test_what_a_missing_package_leaves_unchecked_is_said(self):
        for name, package in (("zstd", "zstandard"), ("lz4", "lz4"), ("tree_12", "xxhash")):
            run = run_witness(samples.path(name), isolated=True)
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertIn(f"the Python package {package} is not installed", run.stderr)

    @unittest.skipUnless(PART == "packages", "the other part")
    def test_every_file_is_checked_whole_and_holds_what_was_written(self):
        for path in samples.paths():
            with self.subTest(file=path.name):
                run = run_witness(path, "--json", isolated=False)
                self.assertEqual(run.returncode, 0, run.stderr)
                found = json.loads(run.stdout)
                self.assertEqual(found["unchecked"], [])
                self.compare(path, found)
        compressed = {
            codec
            for path in samples.paths()
            if needs_packages(path)
            for tensor in Checkpoint(memoryview(path.read_bytes())).tensors
            for codec in (s.CODECS[chunk.codec] for chunk in tensor.chunks)
        }
        self.assertEqual(compressed, set(s.CODECS))

    def test_tensor_prints_elements(self):
        run = run_witness(samples.path("sparse"), "--tensor", "u32.csr", isolated=True)
        self.assertEqual(run.returncode, 0, run.stderr)
        found = json.loads(run.stdout)
        self.assertEqual(found["row_pointers"], [0, 1, 3, 3, 4, 5, 5, 6])
        self.assertEqual(found["column_indices"], [0, 1, 4, 3, 4, 1])
        self.assertEqual(len(found["values"]), 6)


class SourceWalk(unittest.TestCase):
    def test_weights_are_found_without_the_directory(self):
        for name in ("dtypes", "ranks", "roles", "large_sha256", "names", "example", "nothing"):
            with self.subTest(file=name):
                data = samples.data(name)
                tensors = Checkpoint(memoryview(data)).tensors
                weights = {t.entry.stored_offset: t.entry.dtype for t in tensors if t.entry.role in PIECES["weights"]}
                found = {place: dtype for dtype, _, place in source_walk.weights(data)}
                self.assertEqual(found, weights)


class WorkedExample(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        document = (HERE.parents[1] / "docs/format/examples.md").read_text(encoding="utf-8")
        section = document[document.index("\n## Worked example\n") :]
        self.text = section.split("```\n", 2)[1]
        self.data = samples.data("example")

    def test_document_shows_what_the_writer_writes(self):
        self.assertEqual(self.text, annotate(self.data))

    def test_bytes_shown_are_all_bytes_but_zeros(self):
        shown = bytearray(len(self.data))
        for line in self.text.splitlines():
            row = re.match(r"([0-9a-f]{4})  ((?:[0-9a-f]{2} ?)+)(?:  |$)", line)
            if row:
                part = bytes.fromhex(row.group(2))
                start = int(row.group(1), 16)
                shown[start : start + len(part)] = part
        record = self.text.index("a copy of the 256 bytes at 0000")
        start = int(self.text[:record].split()[-1], 16)
        shown[start : start + 256] = shown[:256]
        self.assertEqual(bytes(shown), self.data)


if __name__ == "__main__":
    if PART == "packages" and None in (digests.xxhash, digests.zstandard, digests.lz4_frame):
        print("skipped: the Python packages xxhash, zstandard and lz4 are not all installed")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
