"""The texts obey tests/structure/words.py, and each of its phrases is found where it stands."""

import os
import re
import tempfile
import unittest
from pathlib import Path

import words

ROOT = Path(os.environ.get("THALIA_SOURCE_ROOT", Path(__file__).parents[2]))

# What was written here once, and siblings of it.
WRITTEN = """
A tensor is had in the mapping. It is had all the same. A name that there is not raises an error. The page tells of
lifetimes. That is told as lost. It writes the metadata anew, in thought. As it is made it keeps every tensor. Tensors
that nobody named. Changed elements are found by nobody. A text of a stranger. In the same shape, that is it. Whoever
sets an option expects something of it. A type that has no dequantizes. It leads to it, where it is. It converts each to
each. Patterns are taken in the same words for every command. Of what it made it changes nothing. A key that one leads
out of it is none. It raises TimeoutError, and what the save failed with. What a save does that finds another
unfinished. True where something does, as a list is. Each tensor that it fits. Sparse ones as coo alone. Errors that
name no file name this one. The codes, of which these are the elements. It mends the header. Bytes in front of a
tensor. What stands behind the end. Of a file with regions, their names. A code
is none. It stands in the header. Bytes behind the header.
"""


class ThisTree(unittest.TestCase):
    maxDiff = None

    def test_no_text_has_a_phrase_that_stops_a_reader(self):
        self.assertEqual(words.phrases(ROOT), [])


class BrokenTrees(unittest.TestCase):
    def test_every_phrase_is_found(self):
        for found, *_ in words.PHRASES + words.HABITS:
            self.assertRegex(WRITTEN, re.compile(found.replace(" ", r"\s+")))

    def test_phrases_are_found_where_people_read(self):
        with tempfile.TemporaryDirectory() as folder:
            for path, text in (
                ("docs/use/faq.md", "# A\n\nThis page tells\nof it, `in thought`.\n\n```sh\ntells of it\n```\n"),
                (
                    "include/thalia/a.h",
                    "/// It tells\n/// of lifetimes.\nint tells; // of\n/// Bytes in front of it.\n/// Of it.\n",
                ),
                ("src/io/a.h", "// In front of it.\n// A name that there is not.\n"),
                ("src/io/a.cc", '// A mended file.\nfail("it tells "\n     "of another", "told");\n'),
                ("python/thalia_checkpoint/a.py", '"""A.\n\nIt tells of it."""\nx = 1\n# tells\n# of them\n'),
            ):
                file = Path(folder, path)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)
            found = words.phrases(Path(folder))
        self.assertEqual(
            [line.split(": write")[0] for line in found],
            [
                "docs/use/faq.md:3: 'tells of'",
                "include/thalia/a.h:1: 'tells of'",
                "include/thalia/a.h:4: 'in front of'",
                "include/thalia/a.h:5: 'Of'",
                "python/thalia_checkpoint/a.py:3: 'tells of'",
                "python/thalia_checkpoint/a.py:5: 'tells of'",
                "src/io/a.cc:1: 'mended'",
                "src/io/a.cc:2: 'tells of'",
                "src/io/a.h:2: 'that there is not'",
                "src/io/a.h:1: 'In front of'",
            ],
        )


if __name__ == "__main__":
    unittest.main()
