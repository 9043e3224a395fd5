"""Pages of docs/format/ have one implementation each (tests/structure/implementations.py), and a second is found."""

import os
import tempfile
import unittest
from pathlib import Path

import implementations

PAGES = "docs/format/"
ROOT = Path(os.environ.get("THALIA_SOURCE_ROOT", Path(__file__).parents[2]))


class ThisTree(unittest.TestCase):
    def test_a_page_names_the_folder_that_implements_it(self):
        self.assertEqual(implementations.pages_without_folder(ROOT), [])

    def test_no_other_folder_reads_its_keys(self):
        self.assertEqual(implementations.second_readers(ROOT), [])

    def test_pages_have_keys_and_their_folders_read_them(self):
        reading = implementations.readings(ROOT)
        for name in ("mckp.md", "onnx.md", "safetensors.md", "states.md", "store.md"):
            text = implementations.pages(ROOT)[name]
            folders = tuple(implementations.folders_of(text))
            read = [
                key
                for key in implementations.keys_of(text)
                if any(path.startswith(folders) for path in reading.get(key, ()))
            ]
            self.assertGreaterEqual(len(read), 2, name)


class BrokenTrees(unittest.TestCase):
    PAGE = 'Some text.\n\nImplemented in `src/formats/a/`.\n\n```json\n{"two_words": 1}\n```\n\n| `first_cell` | x |\n'

    def tree(self, texts):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        for path, text in {f"{PAGES}a.md": self.PAGE, "src/formats/a/a.cc": "", **texts}.items():
            file = Path(folder.name, path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        return Path(folder.name)

    def readers(self, texts, readers=()):
        return implementations.second_readers(self.tree(texts), dict.fromkeys(readers, "a reason"))

    def folders(self, texts, none=(), more=()):
        tree = self.tree(texts)
        return implementations.pages_without_folder(tree, dict.fromkeys(none, "why"), dict.fromkeys(more, "why"))

    def test_a_second_reader_is_found(self):
        for path, text in {
            "src/cli/b.cc": 'if (key == "two_words") return;\n',
            "src/convert/b.cc": 'const auto at = text.find("\\"first_cell\\"");\n',
            "src/io/b.cc": 'constexpr Row kRows[] = {{"two_words", 1}};\n',
            "python/b.py": 'value = tree.get("first_cell")\n',
            "python/c.py": 'value = tree["two_words"]\n',
            "python/d.py": 'if "two_words" in tree:\n',
        }.items():
            self.assertEqual(len(self.readers({path: text})), 1, path)

    def test_the_folder_itself_and_what_only_prints_are_none(self):
        self.assertEqual(self.readers({"src/formats/a/b.cc": 'if (key == "two_words") return;\n'}), [])
        self.assertEqual(self.readers({"src/cli/b.cc": 'json.member("two_words", 1);  // key == "two_words"\n'}), [])
        self.assertEqual(self.readers({"src/cli/b.cc": '// key == "two_words"\n'}), [])

    def test_listed_readers_need_something_to_read(self):
        text = {"src/cli/b.cc": 'if (key == "two_words") return;\n'}
        self.assertEqual(self.readers(text, ["src/cli/b.cc"]), [])
        self.assertEqual(len(self.readers({}, ["src/cli/b.cc"])), 1)

    def test_words_of_several_pages_and_plain_ones_are_no_keys(self):
        both = {f"{PAGES}b.md": self.PAGE, "src/cli/b.cc": 'if (key == "two_words") return;\n'}
        self.assertEqual(self.readers(both), [])
        self.assertEqual(
            implementations.keys_of('{"name": 1, "a_b": 2, "_kind": 3, "w.x": 4}'), {"a_b", "_kind", "w.x"}
        )
        self.assertEqual(implementations.keys_of("| u8[4] | magic | ASCII `MAGIC` |\n| `GGUF` |"), {"MAGIC", "GGUF"})

    def test_keys_of_toml_are_read(self):
        self.assertEqual(
            implementations.keys_of("```toml\nfixed_one = 1\nx = { in_row = 2 }\n```\n"), {"fixed_one", "in_row"}
        )

    def test_pages_that_name_no_folder_are_found(self):
        self.assertEqual(self.folders({}), [])
        self.assertEqual(len(self.folders({f"{PAGES}b.md": "Nothing.\n"})), 1)
        self.assertEqual(self.folders({f"{PAGES}b.md": "Nothing.\n"}, none=["b.md"]), [])
        self.assertEqual(len(self.folders({}, none=["a.md"])), 1)
        self.assertEqual(len(self.folders({}, none=["gone.md"])), 1)
        self.assertEqual(len(self.folders({f"{PAGES}b.md": "Implemented in `src/gone/`.\n"})), 1)

    def test_pages_of_two_folders_are_listed(self):
        two = {f"{PAGES}b.md": "Implemented in `src/formats/a/` and `src/formats/b/`.\n", "src/formats/b/b.cc": ""}
        self.assertEqual(len(self.folders(two)), 1)
        self.assertEqual(self.folders(two, more=["b.md"]), [])
        self.assertEqual(len(self.folders({}, more=["a.md"])), 1)


if __name__ == "__main__":
    unittest.main()
