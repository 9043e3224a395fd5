"""No test in Python passes because nothing was returned; and the rule catches those that would."""

import os
import textwrap
import unittest
from pathlib import Path

from python_tests import tests_of_nothing

ROOT = Path(os.environ.get("THALIA_SOURCE_ROOT", Path(__file__).parents[2]))


class ThisTree(unittest.TestCase):
    def test_tests_say_how_much_was_returned(self):
        files = sorted((ROOT / "tests").rglob("*_test.py"))
        self.assertGreater(len(files), 100)
        found = [
            f"{file.relative_to(ROOT)}:{line}: {name} asserts in loops over what was returned alone"
            for file in files
            for line, name in tests_of_nothing(file.read_text(encoding="utf-8"))
        ]
        self.assertEqual(found, [])


class Rule(unittest.TestCase):
    def names(self, text):
        return [name for _, name in tests_of_nothing(textwrap.dedent(text))]

    def test_loops_over_what_was_returned_are_found(self):
        for loop in (
            "for x in read():",
            "for i, x in enumerate(file.tensors()):",
            "found = read()\n    for x in found:",
            "with read() as found:\n      pass\n    for name, x in found['r'].items():",
            "for x in [y for y in read()]:",
            "for x in zip(read(), (1, 2)):",
            "for x in two():",
            "for x in of_all():",
            "for kind in (1, 2):\n      for x in read(kind):",
        ):
            body = "        assert x" if loop.count("for ") > 1 and "\n" in loop else "      assert x"
            helpers = "def two():\n    return read()\ndef of_all():\n    for x in read():\n        yield x\n"
            text = f"{helpers}def test_it():\n    {loop}\n{body}\n"
            self.assertEqual(self.names(text), ["test_it"], loop)

    def test_others_are_not(self):
        for body in (
            "assert read()",
            "for x in (1, 2):\n        assert read(x)",
            "for i in range(3):\n        assert read(i)",
            "for x in read():\n        assert x\n    assert len(read()) == 3",
            "for x, y in zip(read(), (1, 2), strict=True):\n        assert x == y",
            "cases = {1: 2}\n    for x, y in cases.items():\n        assert x == y",
            "for x in two():\n        assert x",
            "for x in of_all():\n        assert x",
            "for x in read():\n        print(x)",
        ):
            helpers = (
                "def two():\n    return [read(1), read(2)]\ndef of_all():\n    for x in (1, 2):\n        yield x\n"
            )
            self.assertEqual(self.names(f"{helpers}def test_it():\n    {body}\n"), [], body)

    def test_methods_are_looked_at(self):
        text = """
            class It(unittest.TestCase):
                def test_it(self):
                    for x in read():
                        self.assertEqual(x, 1)
            """
        self.assertEqual(self.names(text), ["test_it"])


if __name__ == "__main__":
    unittest.main()
