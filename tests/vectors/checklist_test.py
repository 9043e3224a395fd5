"""docs/format/verifying.md, "Verifier's checklist", against the published vectors.

Usage: checklist_test.py, with the witness's folder in PYTHONPATH.
"""

import json
import pathlib
import unittest

import make_vectors

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "data/vectors"
MANIFEST = json.loads((FOLDER / "manifest.json").read_text(encoding="utf-8"))


class Checklist(unittest.TestCase):
    maxDiff = None

    def test_the_manifest_has_the_rows_of_the_document(self):
        self.assertGreater(len(MANIFEST["rules"]), 100)
        self.assertEqual(make_vectors.checklist(), MANIFEST["rules"])

    def test_every_number_has_a_vector_that_shows_it(self):
        shown = {vector["rule"] for vector in MANIFEST["refused"]}
        self.assertEqual(shown, set(MANIFEST["rules"]))

    def test_a_vector_shows_what_its_row_says(self):
        for vector in MANIFEST["refused"]:
            with self.subTest(file=vector["file"]):
                row = MANIFEST["rules"][vector["rule"]]
                found = vector["section"] + ("." + vector["field"] if vector["field"] else "")
                self.assertIn(found, row["findings"])
                for key in ("severity", "class", "code"):
                    self.assertEqual(vector[key], row[key])
                self.assertEqual(vector["reader_refuses"], row["reader"])
                self.assertTrue((FOLDER / "refused" / vector["file"]).is_file())


if __name__ == "__main__":
    unittest.main()
