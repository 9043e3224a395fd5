"""Public structs hold each other instead of saying the same, and the rule finds those that do not."""

import os
import tempfile
import unittest
from pathlib import Path

import fields

ROOT = Path(os.environ.get("THALIA_SOURCE_ROOT", Path(__file__).parents[2]))

FIELDS = """  std::uint64_t bytes = 0;  ///< of the file
  std::vector<std::pair<int, int>> pairs{};
  std::function<void(int, const std::string&)> call{};
  std::optional<std::array<std::uint8_t, 16>> uuid;
"""


class ThisTree(unittest.TestCase):
    def test_no_two_structs_say_the_same(self):
        self.assertEqual(fields.structs_that_say_the_same(ROOT), [])

    def test_structs_and_their_fields_are_seen(self):
        seen = {name: of for name, _, of in fields.structs(ROOT)}
        self.assertGreater(len(seen), 200)
        self.assertEqual(len(seen["SaveOptions"]), 12)
        self.assertIn(("OutputOptions", "output"), seen["SaveOptions"])


class BrokenTrees(unittest.TestCase):
    def found(self, first, second, listed=None):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in (("a", first), ("b", second)):
                file = Path(folder, "include", "thalia", name + ".h")
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, encoding="utf-8")
            return fields.structs_that_say_the_same(Path(folder), listed or {})

    def test_fields_of_every_kind_are_compared(self):
        first, second = f"struct A {{\n{FIELDS}}};\n", f"struct B : C {{\n{FIELDS}}};\n"
        self.assertEqual(len(self.found(first, second)), 1)
        self.assertIn("bytes, call, pairs, uuid", self.found(first, second)[0])
        self.assertEqual(self.found(first, second, {("B", "A"): "a reason"}), [])

    def test_another_type_or_name_is_another_field(self):
        first = f"struct A {{\n{FIELDS}}};\n"
        self.assertEqual(self.found(first, first.replace("A", "B").replace("bytes", "size")), [])
        self.assertEqual(self.found(first, first.replace("A", "B").replace("<int, int>", "<int, bool>")), [])

    def test_functions_are_no_fields(self):
        calls = "  int a() const { return b; }\n  int b(int c) const;\n  friend bool operator==(A, A) = default;\n"
        self.assertEqual(fields.fields_of(calls), set())
        self.assertEqual(fields.fields_of(calls + "  int c = a();\n"), {("int", "c")})

    def test_a_pair_that_is_listed_for_nothing_is_found(self):
        self.assertEqual(len(self.found("struct A {\n};\n", "struct B {\n};\n", {("A", "B"): "idle"})), 1)


if __name__ == "__main__":
    unittest.main()
