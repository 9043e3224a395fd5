"""The documentation site: made with warnings as errors, whole, without a dead link, and in a browser.

Usage: site_test.py SOURCE_ROOT BUILD_FOLDER
"""

import ast
import functools
import html.parser
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import urllib.parse
import zlib

ROOT, BUILD = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
SITE = ROOT / "build-site/html"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
#: What the page of a frame is measured by: the narrowest window without a screen is wider than a phone.
PROBE = """<!DOCTYPE html><title>probe</title><style>body{margin:0}iframe{border:0}</style><iframe></iframe><script>
const frame = document.querySelector("iframe");
const pages = %s;
const seen = [];
async function look() {
  for (const [page, width] of pages) {
    frame.style.width = `${width}px`;
    frame.style.height = "800px";
    await new Promise(done => { frame.onload = done; frame.src = page; });
    const view = frame.contentWindow, edge = frame.contentDocument.documentElement.clientWidth + 1;
    const scrolls = each => ["auto", "scroll"].includes(view.getComputedStyle(each).overflowX);
    const framed = each => each.tagName !== "ARTICLE" && (scrolls(each) || framed(each.parentElement));
    const wide = [...frame.contentDocument.querySelectorAll("article, article *")].filter(
        each => each.getBoundingClientRect().right > edge && !framed(each));
    seen.push([page, width, view.innerWidth, wide.map(each => each.tagName).join("+")].join(" "));
  }
  document.documentElement.dataset.seen = seen.join(",");
}
look();
</script>"""


class Page(html.parser.HTMLParser):
    """What a page refers to, and what may be referred to in it."""

    def __init__(self, text):
        super().__init__()
        self.links, self.loaded, self.ids = [], [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.ids.update(attributes[name] for name in ("id", "name") if attributes.get(name))
        if tag == "a" and attributes.get("href") is not None:
            self.links.append(attributes["href"])
        elif tag == "link":
            self.loaded.append(attributes["href"])
        elif attributes.get("src") is not None:
            self.loaded.append(attributes["src"])


@functools.cache
def page(path):
    return Page(path.read_text(encoding="utf-8"))


def pages():
    return sorted(SITE.rglob("*.html"))


def inventory():
    """Names in each domain, as other sites would refer to them."""
    data = (SITE / "objects.inv").read_bytes().split(b"\n", 4)[4]
    found = {}
    for line in zlib.decompress(data).decode().splitlines():
        name, kind = re.match(r"(.+?) (\S+:\S+) ", line).groups()
        found.setdefault(kind.partition(":")[0], set()).add(name)
    return found


def public_python():
    """Module and name of all that is exported, of the sources: nothing is imported."""
    package = ROOT / "python/thalia_checkpoint"
    for path in [*package.glob("*.py"), *package.glob("*/__init__.py")]:
        where = path.relative_to(package.parent).with_suffix("")
        parts = where.parts[:-1] if where.name == "__init__" else where.parts
        if any(part.startswith("_") for part in parts):
            continue
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                yield from (f"{'.'.join(parts)}.{name}" for name in ast.literal_eval(node.value))


def public_headers():
    found = sorted((ROOT / "include/thalia").rglob("*.h"))
    return [path for path in found if "detail" not in path.parts]


def is_of_c(path):
    return path.parent.name == "c" or path.name == "c.h"


def load_index():
    """What the search looks into."""
    text = (SITE / "searchindex.js").read_text(encoding="utf-8")
    return json.loads(text.removeprefix("Search.setIndex(").rstrip().removesuffix(")"))


class SiteTest(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        shutil.rmtree(SITE, ignore_errors=True)
        made = subprocess.run([ROOT / "tools/site", BUILD], capture_output=True, text=True, check=False)
        assert made.returncode == 0, made.stdout[-5000:] + made.stderr[-5000:]

    def test_every_page_of_docs_is_on_it(self):
        missing = [
            str(path.relative_to(ROOT))
            for path in (ROOT / "docs").rglob("*.md")
            if not (SITE / path.relative_to(ROOT / "docs")).with_suffix(".html").exists()
        ]
        self.assertEqual(missing, [])

    def test_every_public_name_of_python_is_on_it(self):
        names = list(public_python())
        self.assertGreater(len(names), 150)
        self.assertEqual(sorted(set(names) - inventory()["py"]), [])

    def test_every_type_and_function_of_the_headers_is_on_it(self):
        known = inventory()
        types = functions = 0
        for path in public_headers():
            text = path.read_text(encoding="utf-8")
            text = re.sub(r"^namespace detail \{.*?^\}  // namespace detail$", "", text, flags=re.DOTALL | re.MULTILINE)
            with self.subTest(header=path.name):
                if is_of_c(path):
                    declared = set(re.findall(r"^\} (thalia_\w+);|^typedef [^{(]*\b(thalia_\w+);", text, re.MULTILINE))
                    declared = {name for pair in declared for name in pair if name}
                    called = set(re.findall(r"^(?!typedef)[\w* ]*\b(thalia_\w+)\(", text, re.MULTILINE))
                    constants = set(re.findall(r"^  (THALIA_\w+) = ", text, re.MULTILINE))
                    self.assertEqual(sorted((declared | called | constants) - known["c"]), [])
                else:
                    declared = set(
                        re.findall(
                            r"^(?:class|struct|enum class) (\w+)(?: final)?(?: : [^;{]*)? \{", text, re.MULTILINE
                        )
                    )
                    declared |= set(re.findall(r"^using (\w+) =", text, re.MULTILINE))
                    called = set(re.findall(r"^(?:[\w:<>,*&]+ )+(\w+)\(", text, re.MULTILINE))
                    last = {name.rpartition("::")[2] for name in known["cpp"]}
                    self.assertEqual(sorted((declared | called) - last), [])
                types, functions = types + len(declared), functions + len(called)
        self.assertGreater(types, 150)
        self.assertGreater(functions, 150)

    def test_no_link_is_dead(self):
        dead = []
        links = 0
        for path in pages():
            for link in [*page(path).links, *page(path).loaded]:
                if re.match(r"\w+:", link):
                    continue
                name, anchor = urllib.parse.urldefrag(urllib.parse.unquote(link))
                name = name.partition("?")[0]
                target = (path.parent / name).resolve() if name else path
                links += 1
                if not target.is_file() or (
                    anchor and target.suffix == ".html" and urllib.parse.unquote(anchor) not in page(target).ids
                ):
                    dead.append(f"{path.relative_to(SITE)}: {link}")
        self.assertEqual(sorted(set(dead)), [])
        self.assertGreater(links, 5000)

    def test_nothing_is_loaded_from_a_network(self):
        loaded = {each for path in pages() for each in page(path).loaded}
        self.assertGreater(len(loaded), 10)
        self.assertEqual([each for each in sorted(loaded) if re.match(r"(\w+:)?//", each)], [])
        styles = "".join(path.read_text(encoding="utf-8") for path in SITE.rglob("*.css"))
        self.assertIn("--font-stack", styles)
        self.assertEqual(re.findall(r"@import.*|url\(.?(?:\w+:)?//.*", styles), [])

    def test_the_search_finds_a_function(self):
        index = load_index()
        found = index["terms"]["load_into"]
        found = {index["docnames"][each] for each in ([found] if isinstance(found, int) else found)}
        self.assertIn("use/python", found)
        names = [name for names in index["objects"].values() for *_, name in names]
        self.assertIn("load_into", names)

    def test_types_in_signatures_lead_to_classes_alone(self):
        text = (SITE / "reference/python/package.html").read_text(encoding="utf-8")
        types = re.findall(r'<a class="reference internal" href="[^"]*" title="([^"]*)"><span class="pre">', text)
        self.assertIn("thalia_checkpoint.SaveResult", types)
        self.assertEqual([name for name in types if not name.rpartition(".")[2][0].isupper()], [])

    def browse(self, url, *options):
        with tempfile.TemporaryDirectory(prefix="thalia-site-", ignore_cleanup_errors=True) as profile:
            options = [f"--user-data-dir={profile}", "--allow-file-access-from-files", *options]
            ended = subprocess.run(
                [
                    CHROMIUM,
                    "--headless",
                    "--no-sandbox",
                    "--disable-gpu",
                    "--enable-logging=stderr",
                    "--dump-dom",
                    *options,
                    url,
                ],
                capture_output=True,
                text=True,
                timeout=200,
                check=True,
            )
        return ended.stdout, [line for line in ended.stderr.splitlines() if ":CONSOLE" in line]

    @unittest.skipUnless(CHROMIUM, "there is no chromium")
    def test_a_browser_searches_without_a_network(self):
        dom, _ = self.browse((SITE / "search.html").as_uri() + "?q=load_into", "--virtual-time-budget=20000")
        results = re.search(r'<ul [^>]*class="search".*?</ul>', dom, re.DOTALL)
        self.assertIsNotNone(results, dom[-3000:])
        self.assertIn("use/python.html", results[0])
        self.assertIn("reference/python/torch.html", results[0])

    @unittest.skipUnless(CHROMIUM, "there is no chromium")
    def test_no_page_is_wider_than_the_window(self):
        names = [str(path.relative_to(SITE)) for path in pages() if path.name not in ("genindex.html", "search.html")]
        looks = [[name, width] for name in names for width in ((390, 1280) if name.startswith("use/") else (390,))]
        probe = SITE / "probe.html"
        probe.write_text(PROBE % json.dumps(looks), encoding="utf-8")
        try:
            dom, console = self.browse(probe.as_uri(), "--window-size=1400,900", "--virtual-time-budget=600000")
        finally:
            probe.unlink()
        self.assertEqual(console, [])
        # Page, width as asked for and as it was, and what is wider without a frame of its own that scrolls.
        seen = [line.split(" ") for line in re.search('data-seen="(.*?)"', dom)[1].split(",")]
        self.assertEqual(seen, [[name, str(width), str(width), ""] for name, width in looks])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
