"""The documents obey tests/structure/pages.py, and each rule catches a tree that does not."""

import os
import tempfile
import unittest
from pathlib import Path

import pages

ROOT = Path(os.environ.get("THALIA_SOURCE_ROOT", Path(__file__).parents[2]))


class ThisTree(unittest.TestCase):
    def test_links_lead_somewhere(self):
        self.assertEqual(pages.broken_links(ROOT), [])

    def test_pages_that_are_named_exist(self):
        # This file names pages that are not there, to see them found.
        found = [line for line in pages.lost_pages(ROOT) if not line.startswith("tests/structure/pages_test.py:")]
        self.assertEqual(found, [])

    def test_readme_is_one_page(self):
        self.assertEqual(pages.too_long_readme(ROOT), [])


class BrokenTrees(unittest.TestCase):
    def test_broken_links_are_found(self):
        with tempfile.TemporaryDirectory() as folder:
            page = "# One `x` & two\n[a](#one-x--two) [b](#nowhere) [c](gone.md) [d](https://e.org/x)\n"
            Path(folder, "README.md").write_text(page)
            data = Path(folder, "tests/data/old")
            data.mkdir(parents=True)
            Path(data, "README.md").write_text("[e](../../README.md) [f](README.md)\n")
            found = pages.broken_links(Path(folder))
            self.assertEqual([line.split(": ")[1] for line in found], ["#nowhere", "gone.md", "../../README.md"])

    def test_pages_that_are_lost_are_found(self):
        with tempfile.TemporaryDirectory() as folder:
            for path, text in (
                ("docs/use/here.md", "See docs/use/gone.md, and tests/docs/other.md.\n"),
                ("src/io/a.cc", '// docs/use/here.md, docs/*.md\n\n// docs/here.md, "Heading".\n'),
                ("python/b.py", '"""bench/none.md."""\n'),
                ("meson.build", "# docs/moved.1\n"),
            ):
                file = Path(folder, path)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)
            found = pages.lost_pages(Path(folder))
        self.assertEqual(
            [line.split(": ")[0] for line in found],
            ["src/io/a.cc:3", "python/b.py:1", "docs/use/here.md:1", "meson.build:1"],
        )

    def test_a_long_readme_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "README.md").write_text("\n" * 120)
            self.assertEqual(pages.too_long_readme(Path(folder)), [])
            Path(folder, "README.md").write_text("\n" * 121)
            self.assertEqual(len(pages.too_long_readme(Path(folder))), 1)


if __name__ == "__main__":
    unittest.main()
