"""Files are what tests/structure/files.py says, and each rule catches one that is not."""

import os
import tempfile
import unittest
from pathlib import Path

import files

ROOT = Path(os.environ.get("THALIA_SOURCE_ROOT", Path(__file__).parents[2]))


class ThisTree(unittest.TestCase):
    def test_a_header_has_more_than_one_user(self):
        self.assertEqual(files.headers_to_merge(ROOT), [])

    def test_a_header_declares_what_a_source_defines(self):
        self.assertEqual(files.sources_without_header(ROOT), [])

    def test_a_type_is_declared_once(self):
        self.assertEqual(files.types_declared_twice(ROOT), [])

    def test_no_source_is_included(self):
        self.assertEqual(files.included_sources(ROOT), [])


class BrokenTrees(unittest.TestCase):
    def tree(self, **texts):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        for path, text in texts.items():
            file = Path(folder.name, path.replace("__", "/").replace("_dot_", "."))
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        return Path(folder.name)

    def test_headers_of_one_user_are_found(self):
        lone = {
            "src__io__a_dot_h": "",
            "src__io__a_dot_cc": '#include "io/a.h"\n',
            "src__io__b_dot_cc": '#include "io/a.h"\n',
        }
        self.assertEqual(len(files.headers_to_merge(self.tree(**lone), {})), 1)
        self.assertEqual(files.headers_to_merge(self.tree(**lone), {"src/io/a.h": "a reason"}), [])
        shared = {**lone, "tests__io__c_dot_cc": '#include "io/a.h"\n'}
        self.assertEqual(files.headers_to_merge(self.tree(**shared), {}), [])
        self.assertEqual(len(files.headers_to_merge(self.tree(**shared), {"src/io/a.h": "idle"})), 1)
        long = {**lone, "src__io__a_dot_h": "\n" * files.LONGEST_TOGETHER}
        self.assertEqual(files.headers_to_merge(self.tree(**long), {}), [])
        afar = {"src__io__a_dot_h": "", "src__json__b_dot_cc": '#include "io/a.h"\n'}
        self.assertEqual(files.headers_to_merge(self.tree(**afar), {}), [])

    def test_lines_are_counted_where_they_would_go(self):
        half = "\n" * (files.LONGEST_TOGETHER // 2 + 1)
        tree = {"src__io__a_dot_h": "", "src__io__b_dot_h": '#include "io/a.h"\n'}
        self.assertEqual(len(files.headers_to_merge(self.tree(**tree), {})), 1)
        sources = {**tree, "src__io__a_dot_cc": half, "src__io__b_dot_cc": half}
        self.assertEqual(files.headers_to_merge(self.tree(**sources), {}), [])

    def test_sources_that_no_header_declares_are_found(self):
        def found(parts=None, **texts):
            return files.sources_without_header(self.tree(**texts), {"a.h": "io/file", "b.h": "json"}, parts or {})

        self.assertEqual(len(found(src__io__file__x_dot_cc="")), 1)
        self.assertEqual(found(src__io__file__x_dot_cc='#include "thalia/a.h"\n'), [])
        self.assertEqual(found(src__json__x_dot_cc='#include "thalia/b.h"\n'), [])
        self.assertEqual(len(found(src__io__path__x_dot_cc='#include "thalia/a.h"\n')), 1)
        self.assertEqual(found(src__io__file__x_dot_cc="", src__io__file__x_dot_h=""), [])
        parts = {"io/file/y.h": ("io/file/x",)}
        self.assertEqual(found(parts, src__io__file__x_dot_cc='#include "io/file/y.h"\n'), [])
        self.assertEqual(len(found(parts, src__io__file__x_dot_cc="")), 1)
        self.assertEqual(len(found(parts)), 1)
        self.assertEqual(len(found(parts, src__io__file__x_dot_cc="", src__io__file__x_dot_h="")), 1)

    def test_types_of_one_name_are_found(self):
        twice = {"src__io__a_dot_h": "class File final : public Bytes {\n", "src__json__b_dot_h": "enum class File {\n"}
        self.assertEqual(files.types_declared_twice(self.tree(**twice), {}), ["File: in src/io/a.h, src/json/b.h"])
        self.assertEqual(files.types_declared_twice(self.tree(**twice), {"File": "a reason"}), [])
        once = {
            "src__io__a_dot_h": "class File;\n",
            "src__json__b_dot_h": "struct File {\n",
            "src__io__c_dot_cc": "struct File {\n",
        }
        self.assertEqual(files.types_declared_twice(self.tree(**once), {}), [])
        self.assertEqual(len(files.types_declared_twice(self.tree(**once), {"File": "idle"})), 1)

    def test_included_sources_are_found(self):
        self.assertEqual(len(files.included_sources(self.tree(tests__io__a_dot_cc='#include "io/b.cc"\n'))), 1)


if __name__ == "__main__":
    unittest.main()
