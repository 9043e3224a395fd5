"""The Python package keeps to the rooms of tests/structure/python_rooms.py, and each rule catches one that does not."""

import os
import tempfile
import unittest
from pathlib import Path

import python_rooms as rooms

ROOT = Path(os.environ.get("THALIA_SOURCE_ROOT", Path(__file__).parents[2]))


class ThisPackage(unittest.TestCase):
    def test_all_imports_are_looked_at(self):
        found = rooms.arrows(ROOT)
        self.assertGreater(len(found), 300)
        # One within a function, and one by the name of a module.
        self.assertIn(("brain._arrays", "torch._tensors"), {arrow[2:] for arrow in found})
        self.assertIn(("_files.tensor", "_core"), {arrow[2:] for arrow in found})

    def test_no_room_leads_back_to_itself(self):
        self.assertEqual(rooms.table_circles(), [])

    def test_no_module_leads_back_to_itself(self):
        self.assertEqual(rooms.circles(ROOT), [])

    def test_imports_keep_to_the_table(self):
        self.assertEqual(rooms.room_violations(ROOT), [])

    def test_the_table_allows_no_more_than_is_needed(self):
        self.assertEqual(rooms.idle_arrows(ROOT), [])

    def test_no_import_follows_definitions(self):
        self.assertEqual(rooms.late_imports(ROOT), [])

    def test_no_folder_is_crowded(self):
        self.assertEqual(rooms.crowded_folders(ROOT), [])


TABLE = {"low": (), "high": ("low",)}


class BrokenPackages(unittest.TestCase):
    def package(self, **modules):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        root = Path(folder.name)
        for name, text in {"low.__init__": "", "high.__init__": "", **modules}.items():
            path = root / rooms.PACKAGE / (name.replace(".", "/") + ".py")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return root

    def test_imports_back_up_are_found(self):
        for text in (
            "from ..high import b\n",
            "from ..high.b import x\n",
            "from .. import high\n",
            "def f():\n    from ..high.b import x\n",
            "import thalia_checkpoint.high.b\n",
            "from thalia_checkpoint.high import b\n",
        ):
            root = self.package(**{"low.a": text, "high.b": ""})
            self.assertEqual(len(rooms.room_violations(root, TABLE)), 1, text)
        down = self.package(**{"high.b": "from ..low import a\nfrom ..errors import E\n", "low.a": "", "errors": ""})
        self.assertEqual(rooms.room_violations(down, TABLE), [])
        checked = self.package(**{"low.a": "if TYPE_CHECKING:\n    from ..high.b import x\n", "high.b": ""})
        self.assertEqual(rooms.room_violations(checked, TABLE), [])

    def test_the_base_imports_no_room(self):
        root = self.package(errors="from .low import a\n", **{"low.a": ""})
        self.assertEqual(len(rooms.room_violations(root, TABLE)), 1)

    def test_modules_outside_of_rooms_are_found(self):
        root = self.package(attic="", **{"cellar.a": ""})
        self.assertEqual(len(rooms.room_violations(root, TABLE)), 2)

    def test_circles_of_modules_are_found(self):
        root = self.package(**{"low.a": "from .b import x\n", "low.b": "def f():\n    from . import a\n"})
        self.assertEqual(rooms.circles(root), ["low.a", "low.b"])
        by_package = self.package(**{"low.__init__": "from .a import x\n", "low.a": "from . import x\n"})
        self.assertEqual(rooms.circles(by_package), ["low", "low.a"])

    def test_circles_of_rooms_are_found(self):
        self.assertEqual(rooms.table_circles({"low": ("high",), "high": ("low",)}), ["low -> high"])

    def test_arrows_that_nobody_needs_are_found(self):
        self.assertEqual(rooms.idle_arrows(self.package(), {**TABLE, "attic": ()}), ["attic", "high -> low"])

    def test_imports_after_definitions_are_found(self):
        root = self.package(**{"low.a": "def f():\n    import os\n\n\nimport re\n"})
        self.assertEqual(rooms.late_imports(root), [f"{rooms.PACKAGE}/low/a.py:5"])

    def test_crowds_are_found(self):
        root = self.package(**{f"low.a{i}": "" for i in range(rooms.MOST_FILES)})
        self.assertEqual(rooms.crowded_folders(root), [(f"{rooms.PACKAGE}/low", rooms.MOST_FILES + 1)])


if __name__ == "__main__":
    unittest.main()
