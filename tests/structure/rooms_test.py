"""The tree keeps to the rooms of tests/structure/rooms.py, and each rule catches one that does not."""

import os
import tempfile
import unittest
from pathlib import Path

import rooms
import rules

ROOT = Path(os.environ.get("THALIA_SOURCE_ROOT", Path(__file__).parents[2]))


class ThisTree(unittest.TestCase):
    def test_no_room_leads_back_to_itself(self):
        self.assertEqual(rooms.circles(), [])

    def test_includes_keep_to_the_table(self):
        self.assertEqual(rooms.room_violations(ROOT, rules.PUBLIC_PLACES), [])

    def test_the_table_allows_no_more_than_is_needed(self):
        self.assertEqual(rooms.idle_arrows(ROOT, rules.PUBLIC_PLACES), [])

    def test_names_in_sight_differ(self):
        self.assertEqual(rooms.names_in_sight(ROOT), [])

    def test_tests_mirror_the_rooms(self):
        self.assertEqual(rooms.tests_without_room(ROOT), [])

    def test_no_folder_is_crowded(self):
        self.assertEqual(rooms.crowded_folders(ROOT), [])


TABLE = {"state": {"low": (), "high": ("low",)}}
PLACES = {"low.h": "state/low", "high.h": "state/high", "base.h": "base"}


class BrokenTrees(unittest.TestCase):
    def tree(self, **files):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        for path, text in files.items():
            file = Path(folder.name, path.replace("__", "/") + ".cc")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        return Path(folder.name)

    def test_circles_are_found(self):
        table = {"state": {"a": ("b",), "b": ("c",), "c": ("b",), "d": ("a",)}}
        self.assertEqual(rooms.circles(table), ["state/b", "state/c"])

    def test_includes_back_up_are_found(self):
        up = self.tree(src__state__low__a='#include "state/high/b.h"\n#include "base/x.h"\n')
        found = rooms.room_violations(up, PLACES, TABLE)
        self.assertEqual(len(found), 1)
        self.assertIn("state/low must not include state/high", found[0])
        public = self.tree(src__state__low__a='#include "thalia/high.h"\n#include "thalia/base.h"\n')
        self.assertEqual(len(rooms.room_violations(public, PLACES, TABLE)), 1)
        down = self.tree(src__state__high__a='#include "state/low/b.h"\n#include "thalia/low.h"\n')
        self.assertEqual(rooms.room_violations(down, PLACES, TABLE), [])

    def test_files_outside_of_rooms_are_found(self):
        tree = self.tree(src__state__a="", src__state__attic__b="", src__base__c="")
        self.assertEqual(len(rooms.room_violations(tree, PLACES, TABLE)), 2)

    def test_arrows_that_nobody_needs_are_found(self):
        tree = self.tree(src__state__low__a="", src__state__high__b="")
        self.assertEqual(rooms.idle_arrows(tree, PLACES, TABLE), ["state/high -> low"])
        empty = self.tree(src__state__low__a="")
        self.assertIn("state/high", rooms.idle_arrows(empty, PLACES, TABLE))

    def test_same_names_in_sight_are_found(self):
        tree = self.tree(src__state__low__a="", src__state__high__a="", src__state__high__b="")
        self.assertEqual(len(rooms.names_in_sight(tree, TABLE)), 1)

    def test_tests_of_no_room_are_found(self):
        tree = self.tree(tests__state__low__a_test="", tests__state__attic__b_test="")
        self.assertEqual(rooms.tests_without_room(tree, TABLE), ["tests/state/attic"])

    def test_crowds_are_found(self):
        files = {f"src__state__low__a{i}": "" for i in range(rooms.MOST_FILES + 1)}
        tree = self.tree(src__state__high__a="", **files)
        crowd = [("src/state/low", rooms.MOST_FILES + 1)]
        self.assertEqual(rooms.crowded_folders(tree, {}), crowd)
        self.assertEqual(rooms.crowded_folders(tree, {"src/state/low": "a reason"}), [])
        self.assertEqual(rooms.crowded_folders(tree, {"src/state/high": "idle"}), [*crowd, ("src/state/high", 1)])


if __name__ == "__main__":
    unittest.main()
