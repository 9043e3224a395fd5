"""thalia report: the page parsed, and what it says compared with what the other commands say.

report_test.py THALIA MAKE_FILES
"""

import html.parser
import json
import math
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

from pictures import numpy, write_safetensors

THALIA, MAKE_FILES = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
VOID = {"meta", "link"}
HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "a&amp;b",
    "</style></title></svg>",
    "\u202eevil",
]


class Page(html.parser.HTMLParser):
    """The elements of a page: (tag, attributes, text of its own), with where each lies."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements, self.open, self.wrong = [], [], []
        self.feed(text)
        self.close()
        self.wrong += [f"<{element['tag']}> is not closed" for element in self.open]

    def handle_starttag(self, tag, attributes):
        element = self.add(tag, attributes)
        if tag not in VOID:
            self.open.append(element)

    def handle_startendtag(self, tag, attributes):
        self.add(tag, attributes)

    def add(self, tag, attributes):
        element = {"tag": tag, "is": dict(attributes), "text": "", "within": list(self.open), "holds": []}
        self.elements.append(element)
        if self.open:
            self.open[-1]["holds"].append(element)
        return element

    def handle_endtag(self, tag):
        if not self.open or self.open[-1]["tag"] != tag:
            self.wrong.append(f"</{tag}> within {[element['tag'] for element in self.open]}")
        else:
            self.open.pop()

    def handle_data(self, data):
        if self.open:
            self.open[-1]["text"] += data

    def of(self, tag, within=None):
        return [
            element
            for element in self.elements
            if element["tag"] == tag and (within is None or within in element["within"])
        ]

    def section(self, name):
        (section,) = (s for s in self.of("section") if s["is"]["id"] == name)
        return section

    def rows(self, name):
        """Cells of the rows of the first table of a section, as (text, data-value)."""
        table = self.of("table", self.section(name))[0]
        rows = []
        for row in self.of("tr", table):
            if any(element["tag"] == "tbody" for element in row["within"]):
                rows.append([(cell["text"], cell["is"].get("data-value")) for cell in row["holds"]])
        return rows

    def texts(self, name):
        section = self.section(name)
        return "\n".join(e["text"] for e in self.elements if section in e["within"])


class ReportTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="thalia-report-")
        cls.addClassCleanup(cls.folder.cleanup)
        cls.path = pathlib.Path(cls.folder.name)
        subprocess.run([MAKE_FILES, cls.folder.name], check=True)
        random = numpy.random.default_rng(5)
        before = {f"model.h.{i}.w": random.normal(size=(20, 10)) for i in range(4)}
        before |= {name: random.normal(size=8) for name in HOSTILE}
        after = {name: array.copy() for name, array in before.items()}
        after["model.h.1.w"] = after["model.h.1.w"] * 1.5
        after["model.h.2.w"][0, 0] = numpy.nan
        after["model.h.2.w"][0, 1:4] = 0
        del after["a&amp;b"]
        write_safetensors(cls.path / "before.safetensors", before)
        write_safetensors(cls.path / "after.safetensors", after)

    def thalia(self, command):
        return subprocess.run([THALIA, *command.split()], cwd=self.path, capture_output=True, text=True)

    def report(self, files, status=0):
        result = self.thalia(f"report {files} -o page.html --force")
        self.assertEqual((result.returncode, result.stderr), (status, ""))
        text = (self.path / "page.html").read_text(encoding="utf-8")
        page = Page(text)
        self.assertEqual(page.wrong, [])
        self.check_page(page, text)
        return page

    def check_page(self, page, text):
        """What holds for every page: it is complete, refers to nothing else, and can be read aloud."""
        self.assertTrue(text.startswith("<!DOCTYPE html>\n"))
        self.assertNotIn("://", text)
        self.assertNotIn("url(", text)
        self.assertNotIn("@import", text)
        self.assertNotIn("\u202e", text)
        for element in page.elements:
            self.assertNotIn("src", element["is"])
            self.assertFalse([name for name in element["is"] if name.startswith("on")])
        self.assertEqual({e["tag"] for e in page.elements} & {"img", "iframe", "object", "form"}, set())
        ids = [element["is"]["id"] for element in page.elements if "id" in element["is"]]
        self.assertEqual(len(ids), len(set(ids)))
        for element in page.elements:
            target = element["is"].get("href", "data:,")
            self.assertTrue(target == "data:," or target.removeprefix("#") in ids, target)
            label = element["is"].get("aria-labelledby")
            self.assertTrue(label is None or label in ids)
        self.assertEqual([e["is"]["lang"] for e in page.of("html")], ["en"])
        for tag in "title", "h1", "main", "header", "nav", "footer", "script", "style":
            # Pictures have titles of their own.
            found = [e for e in page.of(tag) if all(w["tag"] != "svg" for w in e["within"])]
            self.assertEqual(len(found), 1, tag)
        for table in page.of("table"):
            self.assertEqual(len(page.of("caption", table)), 1)
        for heading in page.of("th"):
            self.assertIn(heading["is"]["scope"], ("row", "col"))
        for picture in page.of("svg"):
            self.assertEqual(picture["is"]["role"], "img")
            self.assertTrue(picture["is"]["aria-label"])

    def test_tensors_are_those_of_stats_whatever_their_names(self):
        page = self.report("after.safetensors")
        stats = json.loads(self.thalia("stats after.safetensors --json").stdout)["tensors"]
        rows = page.rows("tensors")
        self.assertEqual(len(rows), len(stats))
        self.assertLess(set(HOSTILE[:2]), {row[0][0] for row in rows})
        for row, tensor in zip(rows, stats, strict=True):
            names = [tensor["name"].replace("\u202e", "\\u202e")]
            self.assertIn(row[0][0], names)
            self.assertEqual(row[1][0], tensor["dtype"])
            expected = [tensor[key] for key in ("min", "max", "mean", "std", "zeros", "nan", "infinite")]
            for cell, number in zip(row[4:], expected, strict=True):
                self.assertTrue(math.isclose(float(cell[1]), number, rel_tol=1e-14), (cell, number))

    def test_summary_is_that_of_info(self):
        page = self.report("grown.thalia")
        section = page.section("summary")
        said = [e["text"] for e in page.elements if section in e["within"] and e["tag"] in ("dt", "dd")]
        info = self.thalia("info grown.thalia").stdout
        for text in said:
            self.assertIn(text, info)
        self.assertIn("training step", said)
        self.assertIn("Whole.", page.texts("verification"))
        self.assertIn("Neurons per region over training steps", [p["is"]["aria-label"] for p in page.of("svg")])

    def test_changes_are_those_of_plot_diff(self):
        page = self.report("after.safetensors before.safetensors")
        self.thalia("plot diff before.safetensors after.safetensors -o diff.svg --force")
        root = ElementTree.parse(self.path / "diff.svg").getroot()
        drawn = {}
        for group in root.iter("{http://www.w3.org/2000/svg}g"):
            if group.get("class") == "change" and group.get("data-relative") != "0":
                drawn[group.get("data-name")] = group.get("data-relative") or None
        bars = [g["is"] for g in page.of("g", page.section("changes")) if g["is"]["class"] == "change"]
        self.assertEqual({bar["data-name"]: bar["data-relative"] or None for bar in bars}, drawn)
        found = {row[0][0]: row[1] for row in page.rows("changes")}
        self.assertEqual({name: value for name, (_, value) in found.items()}, drawn)
        self.assertAlmostEqual(float(found["model.h.1.w"][1]), 0.5, delta=1e-6)
        self.assertEqual(found["a&amp;b"], ("removed", None))
        self.assertIn("6 tensors are the same", page.texts("changes"))

    def test_of_many_changes_the_most_changed_are_drawn_and_all_listed(self):
        before = {f"w{i}": numpy.ones(2) for i in range(60)}
        write_safetensors(self.path / "one.safetensors", before)
        write_safetensors(self.path / "other.safetensors", {f"w{i}": numpy.full(2, 1 + i) for i in range(60)})
        page = self.report("other.safetensors one.safetensors")
        self.assertEqual(len(page.rows("changes")), 59)
        bars = [g["is"]["data-name"] for g in page.of("g", page.section("changes")) if g["is"]["class"] == "change"]
        self.assertEqual(bars, [f"w{i}" for i in range(20, 60)])
        self.assertIn("40 of 59 tensors are drawn, the most changed.", page.texts("changes"))

    def test_changes_of_metadata_are_those_of_diff(self):
        page = self.report("grown.thalia basic.thalia")
        text = page.texts("changes")
        diff = json.loads(self.thalia("diff basic.thalia grown.thalia --json").stdout)
        for part in "header", "metadata":
            self.assertTrue(diff[part])
            for field in diff[part]:
                self.assertIn(field["field"], text)
        self.assertIn("12345", text)

    def test_a_delta_has_a_chain(self):
        self.thalia("delta basic.thalia grown.thalia later.delta.thalia")
        page = self.report("later.delta.thalia")
        kinds = [e["is"]["data-kind"] for e in page.of("g", page.section("chain")) if "data-kind" in e["is"]]
        self.assertEqual(kinds, ["full", "delta"])

    def test_damage_is_told_and_the_rest_still_shown(self):
        data = bytearray((self.path / "basic.thalia").read_bytes())
        listed = json.loads(self.thalia("ls basic.thalia -r --json").stdout)
        (offset,) = (t["offset"] for t in listed["tensors"] if t["name"] == "w_in")
        data[offset + 5] ^= 0x40
        (self.path / "damaged.thalia").write_bytes(data)
        page = self.report("damaged.thalia", status=1)
        self.assertIn("Damaged.", page.texts("verification"))
        findings = page.rows("verification")
        verify = json.loads(self.thalia("verify damaged.thalia --json").stdout)["files"][0]
        self.assertEqual([row[2][0] for row in findings], [f["message"] for f in verify["findings"]])
        rows = {row[0][0]: row for row in page.rows("tensors")}
        self.assertEqual(len(rows["cortex/w_in"]), 5)
        self.assertEqual(len(rows["hippocampus/w"]), 11)

    def test_layers_are_regions_or_beginnings_of_names(self):
        rows = self.report("after.safetensors").rows("layers")
        self.assertEqual([row[0][0] for row in rows][:4], [f"model.h.{i}" for i in range(4)])
        self.assertEqual(rows[0][2][0], "800 B")
        regions = [row[0][0] for row in self.report("basic.thalia").rows("layers")]
        self.assertEqual(regions, ["cortex", "hippocampus", "cortex->hippocampus"])

    def test_of_many_tensors_all_are_listed_and_some_drawn(self):
        write_safetensors(self.path / "many.safetensors", {f"l.{i}.w": numpy.full(3, i) for i in range(2000)})
        page = self.report("many.safetensors")
        self.assertEqual(len(page.rows("tensors")), 2000)
        self.assertEqual(len(page.of("svg")), 24)
        self.assertIn("24 of 2,000 tensors are shown, the largest.", page.texts("weights"))
        self.assertEqual(len(page.rows("layers")), 100)
        self.assertIn("100 of 2,000 layers are shown", page.texts("layers"))

    def test_equal_files_give_equal_pages(self):
        pages = set()
        for _ in range(2):
            self.report("grown.thalia basic.thalia")
            pages.add((self.path / "page.html").read_bytes())
        self.assertEqual(len(pages), 1)

    def test_every_format_has_a_page(self):
        self.thalia("convert model.safetensors model.thalia")
        self.thalia("convert model.safetensors model.mckp")
        self.thalia("migrate model.thalia old.thalia --to 0.1")
        counts = {
            file: len(self.report(f"{file} model.safetensors").rows("tensors"))
            for file in ("model.safetensors", "model.thalia", "model.mckp", "old.thalia")
        }
        self.assertEqual(len(set(counts.values())), 1, counts)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
