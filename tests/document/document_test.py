"""The pages of the format against the headers: structures, codes, numbers, references.

The headers' THALIA_ON_DISK and THALIA_FIELD lines are static_asserts, so what they say is what the
compiler laid out; here the document's tables must say the same, and all of it.

Usage: document_test.py SOURCE_ROOT
"""

import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 else ".")
PAGES = {
    name: (ROOT / "docs/format" / f"{name}.md").read_text(encoding="utf-8")
    for name in ("format", "deltas", "packed", "writing", "verifying", "examples", "states", "v01")
}
DOCUMENT = "\n".join(PAGES.values())
# The structures, and the enumerations that users name.
HEADERS = [
    *sorted((ROOT / "src/format").glob("*.h")),
    *(ROOT / "include/thalia" / f"{name}.h" for name in ("options", "types")),
]
FORMAT = "\n".join(path.read_text(encoding="utf-8") for path in HEADERS)
WIDTHS = {"u8": 1, "u16": 2, "u32": 4, "u64": 8}
CPP_TYPES = {
    "std::uint8_t": "u8",
    "le16": "u16",
    "le32": "u32",
    "le64": "u64",
    "Digest128": "u8[16]",
    "Digest256": "u8[32]",
    "Uuid": "u8[16]",
}


def header(name):
    return (ROOT / "include/thalia" / name).read_text(encoding="utf-8")


def rows_behind(text):
    """Cells of the first table in text, without its head and its rule."""
    rows = []
    for line in text.splitlines():
        if line.startswith("|"):
            rows.append([cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
        elif rows:
            break
    return rows[2:]


def tables(introduction):
    """{name: rows} for each table behind a match of introduction, whose first group is the name."""
    found = {}
    for match in re.finditer(introduction, DOCUMENT, re.MULTILINE):
        assert match.group(1) not in found, f"{match.group(1)} is described twice"
        found[match.group(1)] = rows_behind(DOCUMENT[match.end() :])
    return found


def tables_headed(head):
    """All tables whose head is this line, row by row."""
    rows = []
    for match in re.finditer("^" + re.escape(head) + "$", DOCUMENT, re.MULTILINE):
        rows += rows_behind(DOCUMENT[match.start() :])
    return rows


def headings_of(text):
    return re.findall(r"^#+ (.*)$", text, re.MULTILINE)


def anchor(heading):
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def enumerators(text):
    """{enum: {enumerator: value}} of the enum classes in text."""
    found = {}
    for match in re.finditer(r"enum class (\w+) : [\w:]+ \{([^}]*)\}", text):
        body = re.sub(r"//.*", "", match.group(2))
        found[match.group(1)] = {name: int(value) for name, value in re.findall(r"(\w+) = (\d+)", body)}
    return found


def integer_constants(text):
    """{name: value} of the integer constants in text, in C++ terms: 1 << 20, 64 * 1024, kOther."""
    known = {}
    for name, expression in re.findall(r"inline constexpr (?:std::uint\d+_t|unsigned) (k\w+) = ([^;]+);", text):
        expression = re.sub(r"k\w+", lambda word: str(known[word.group()]), expression)
        assert re.fullmatch(r"[\d\s<*+()|-]+", expression), f"{name} = {expression}"
        known[name] = eval(expression)  # digits and operators only, as just checked
    return known


STRUCTURES = tables(r"^Structure `(\w+)`, \d+ bytes:$")
ENUMERATIONS = tables(r"^Enumeration `(\w+)`")
FLAGS = {row[1].strip("`"): 1 << int(row[0]) for row in tables_headed("| bit | flag | meaning |")}
CONSTANTS = {row[0].strip("`"): int(row[1]) for row in tables_headed("| constant | value |")}


class Document(unittest.TestCase):
    maxDiff = None

    def test_structures_have_the_sizes_of_the_structs(self):
        in_headers = dict(re.findall(r"^THALIA_ON_DISK\((\w+), (\d+)\);", FORMAT, re.MULTILINE))
        in_document = dict(re.findall(r"^Structure `(\w+)`, (\d+) bytes:$", DOCUMENT, re.MULTILINE))
        self.assertTrue(in_headers)
        self.assertEqual(in_document, in_headers)

    def test_fields_are_those_of_the_structs_in_both_directions(self):
        in_headers = {}
        for struct, field, offset, size in re.findall(
            r"^THALIA_FIELD\((\w+), (\w+), (0x[0-9A-F]+), (\d+)\);", FORMAT, re.MULTILINE
        ):
            in_headers.setdefault(struct, []).append((int(offset, 16), int(size), field))
        in_document = {
            name: [(int(row[0], 16), int(row[1]), row[3]) for row in rows] for name, rows in STRUCTURES.items()
        }
        for name in sorted(in_headers.keys() | in_document.keys()):
            with self.subTest(struct=name):
                self.assertEqual(in_document.get(name), in_headers.get(name))

    def test_field_types_are_those_of_the_structs(self):
        types = dict(CPP_TYPES)
        for name, bits in re.findall(r"^enum class (\w+) : std::uint(\d+)_t", FORMAT, re.MULTILINE):
            types[name if bits == "8" else f"LittleEndian<{name}>"] = f"u{bits}"
        for name, rows in STRUCTURES.items():
            with self.subTest(struct=name):
                body = re.search(rf"^struct {name} \{{(.*?)^\}};", FORMAT, re.MULTILINE | re.DOTALL)
                declared = [
                    types[kind] + (extent or "")
                    for kind, extent in re.findall(r"^  ([\w:<>]+) \w+(\[\d+\])?;", body.group(1), re.MULTILINE)
                ]
                self.assertEqual([row[2] for row in rows], declared)

    def test_fields_follow_each_other_without_gaps(self):
        for name, rows in STRUCTURES.items():
            with self.subTest(struct=name):
                at = 0
                for offset, size, kind, field, value in rows:
                    width, count = re.fullmatch(r"(u\d+)(?:\[(\d+)\])?", kind).groups()
                    self.assertEqual(int(offset, 16), at, field)
                    self.assertEqual(int(size), WIDTHS[width] * int(count or 1), field)
                    self.assertTrue(value, f"{field} without legal values")
                    at += int(size)
                size = re.search(rf"^Structure `{name}`, (\d+) bytes:$", DOCUMENT, re.MULTILINE)
                self.assertEqual(at, int(size.group(1)))

    def test_enumerations_are_those_of_the_headers_in_both_directions(self):
        in_headers = enumerators(FORMAT + header("error.h"))
        in_headers["DType"]["bool"] = in_headers["DType"].pop("boolean")
        in_document = {name: {row[1]: int(row[0]) for row in rows} for name, rows in ENUMERATIONS.items()}
        self.assertEqual(len(in_headers["DType"]), 29)
        for name in sorted(in_headers.keys() | in_document.keys()):
            with self.subTest(enum=name):
                self.assertEqual(in_document.get(name), in_headers.get(name))

    def test_element_types_have_the_widths_of_the_library(self):
        source = (ROOT / "src/base/dtype.cc").read_text(encoding="utf-8")
        in_source = re.findall(r'\{"(\w+)", (\d+), (\d), k\w+', source)
        in_document = [(row[1], row[2], row[3]) for row in ENUMERATIONS["DType"]]
        self.assertEqual(in_document, in_source)

    def test_flags_and_constants_are_those_of_the_headers_in_both_directions(self):
        in_headers = integer_constants(FORMAT)
        known = {name: in_headers.pop(name) for name in ("kKnownFlags", "kKnownTensorFlags")}
        counts = {name: in_headers.pop(name) for name in list(in_headers) if name.endswith("Count")}
        self.assertEqual(FLAGS | CONSTANTS, in_headers)
        header_flags = [bit for name, bit in FLAGS.items() if name.startswith("kFlag")]
        self.assertEqual(known["kKnownFlags"], sum(header_flags))
        self.assertEqual(known["kKnownTensorFlags"], FLAGS["kTensorWideIndices"])
        for name, count in counts.items():
            self.assertEqual(count, len(ENUMERATIONS[name[1:].removesuffix("Count")]), name)

    def test_magic_bytes_are_those_of_the_headers(self):
        for constant, struct in (
            ("kMagic", "Header"),
            ("kDirectoryMagic", "DirectoryHeader"),
            ("kDeltaMagic", "DeltaHeader"),
            ("kSeekTableMagic", "SkippableHeader"),
            ("kMetaMagic", "MetaHeader"),
        ):
            with self.subTest(struct=struct):
                body = re.search(rf"{constant}\[\d\] = \{{(.*?)\}};", FORMAT).group(1)
                parts = [part.strip() for part in body.split(",")]
                codes = [ord(part[1]) if part[0] == "'" else int(part, 16) for part in parts]
                self.assertEqual(STRUCTURES[struct][0][3], "magic")
                self.assertIn(bytes(codes).hex(" ").upper(), STRUCTURES[struct][0][4])

    def test_limits_are_those_of_the_reader(self):
        body = re.search(r"struct ReadLimits \{(.*?)\n\};", header("options.h"), re.DOTALL)
        in_header = re.findall(r"^  [\w:<>]+ (max_\w+)", body.group(1), re.MULTILINE)
        security = (ROOT / "docs/contribute/security.md").read_text(encoding="utf-8")
        table = rows_behind(security[security.index("\n| limit | default |") + 1 :])
        in_document = [row[0].strip("`") for row in table]
        self.assertEqual(in_document, in_header)

    def test_section_names_are_those_of_the_findings(self):
        comment = re.search(r"std::string section;((?:\s*///<.*)+)", header("verify.h")).group(1)
        in_header = set(re.findall(r"\w+", comment))
        in_document = {row[0] for row in tables_headed("| section | part |")}
        self.assertEqual(in_document, in_header)

    def test_headings_that_sources_cite_exist(self):
        pages = {path.stem: path.read_text(encoding="utf-8") for path in ROOT.glob("docs/**/*.md")}
        headings = {name: headings_of(text) for name, text in pages.items()}
        cited = 0
        for folder in ("include", "src", "tests"):
            for path in sorted((ROOT / folder).rglob("*")):
                if path.suffix not in (".h", ".cc", ".py"):
                    continue
                text = re.sub(r"\s*\n\s*(?://[/!<]*|#) ?", " ", path.read_text(encoding="utf-8"))
                citations = r'docs/\w+/(\w+)\.md, ((?:"[^"]+"(?:,| and)? ?)+)'
                for page, names in re.findall(citations, text):
                    for name in re.findall(r'"([^"]+)"', names):
                        cited += 1
                        where = f"cited in {path.relative_to(ROOT)}"
                        self.assertIn(name.rstrip(".,"), headings[page], where)
        self.assertGreater(cited, 100)

    def test_words_that_bind_are_in_capitals(self):
        for name, text in PAGES.items():
            with self.subTest(page=name):
                # "can" says what happens; MAY and MUST what is allowed and asked for.
                self.assertEqual(re.findall(r".*\b(?:must|should|shall|may|have to|has to)\b.*", text), [])
                if name != "examples":
                    self.assertRegex(text, r"\bMUST\b")

    def test_the_first_page_lists_all_pages(self):
        listed = re.findall(r"^\| (?:\[\w+\.md\]\()?(\w+)\.md\)? \|", PAGES["format"], re.MULTILINE)
        self.assertEqual(listed, list(PAGES))

    def test_every_page_lists_its_sections(self):
        for name, text in PAGES.items():
            with self.subTest(page=name):
                begin = text.index("\n- [")
                contents = text[begin : text.index("\n## ", begin)]
                listed = re.findall(r"\]\(#([^)]+)\)", contents)
                headings = re.findall(r"^## (.*)$", text, re.MULTILINE)
                self.assertEqual([head for head in headings if anchor(head) not in listed], [])

    def test_no_two_headings_have_one_anchor(self):
        for name, text in PAGES.items():
            with self.subTest(page=name):
                headings = headings_of(text)
                anchors = {anchor(heading) for heading in headings}
                self.assertEqual(len(anchors), len(headings))


if __name__ == "__main__":
    unittest.main()
