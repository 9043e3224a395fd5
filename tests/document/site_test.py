"""The documentation site: made with warnings as errors, whole, without a dead link, and in a browser.

Usage: site_test.py SOURCE_ROOT BUILD_FOLDER
"""

import ast
import functools
import html
import html.parser
import http.server
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.parse
import zlib

ROOT, BUILD = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
SITE = ROOT / "build-site/html"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
#: On a machine that does much else, a browser may take minutes for what else takes it seconds.
PATIENCE_S = 1500
#: What a browser asks for by itself; pages ask the others of these for fonts and scripts.
OF_THE_BROWSER = re.compile(r"\b(?!fonts\.|ajax\.)[\w-]+\.(google|googleapis|gvt1)\.com\b")


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


class Network(http.server.ThreadingHTTPServer):
    """All that a browser has for one: a proxy that notes what is asked of it, and gives nothing."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Refusal)
        self.asked = []

    def __enter__(self):
        self._thread = threading.Thread(target=self.serve_forever, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *error):
        self.shutdown()
        self._thread.join()
        self.server_close()


class Refusal(http.server.BaseHTTPRequestHandler):
    def refuse(self):
        if not OF_THE_BROWSER.search(self.path.partition("?")[0]):
            self.server.asked.append(f"{self.command} {self.path}")
        self.send_error(502)

    do_GET = do_HEAD = do_POST = do_CONNECT = refuse

    def log_message(self, *arguments):
        pass


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
        assert CHROMIUM, "there is no browser: please install Debian's package chromium"
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

    def test_every_command_and_option_is_on_it(self):
        """An option of several commands stands once, as one of `thalia`."""
        printed = subprocess.run([BUILD / "src/cli/thalia", "help", "--json"], capture_output=True, check=True).stdout
        commands = json.loads(printed)["commands"]
        self.assertGreater(len(commands), 40)
        known = inventory()["std"]
        text = (SITE / "reference/thalia.html").read_text(encoding="utf-8")
        missing = []
        for command in commands:
            program = f"thalia-{command['name'].replace(' ', '-')}"
            self.assertRegex(text, rf"<h3>thalia {command['name']}<")
            for name in (name for option in command["options"] for name in option["names"]):
                if name not in ("-h", "--help") and not {f"{program}.{name}", f"thalia.{name}"} & known:
                    missing.append(f"{program} {name}")
        self.assertEqual(missing, [])

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
        """The page that its scripts have made, what they have printed, and what was asked of a network."""
        temporary = tempfile.TemporaryDirectory(prefix="thalia-site-", ignore_cleanup_errors=True)
        with Network() as network, temporary as profile:
            ended = subprocess.run(
                [
                    CHROMIUM,
                    "--headless",
                    "--no-sandbox",
                    "--disable-gpu",
                    "--disable-dev-shm-usage",
                    "--disable-background-networking",
                    f"--proxy-server=127.0.0.1:{network.server_port}",
                    "--enable-logging=stderr",
                    f"--user-data-dir={profile}",
                    f"--timeout={PATIENCE_S * 1000}",
                    "--dump-dom",
                    *options,
                    url,
                ],
                capture_output=True,
                text=True,
                timeout=PATIENCE_S,
                check=True,
            )
        return ended.stdout, [line for line in ended.stderr.splitlines() if ":CONSOLE" in line], network.asked

    def probe(self, name, variable, value, *options):
        """What a page of this folder says that it has seen: it lies beside the site's, and looks at them in a frame."""
        text = (pathlib.Path(__file__).parent / name).read_text(encoding="utf-8").replace(variable, json.dumps(value))
        page = SITE / name
        page.write_text(text, encoding="utf-8")
        try:
            options = ["--allow-file-access-from-files", "--virtual-time-budget=3000000", *options]
            dom, console, asked = self.browse(page.as_uri(), *options)
        finally:
            page.unlink()
        self.assertEqual([console, asked], [[], []])
        found = re.search('data-seen="(.*?)"', dom)
        self.assertIsNotNone(found, dom[-3000:])
        return json.loads(html.unescape(found[1]))

    def test_a_browser_searches_a_folder(self):
        dom, _, asked = self.browse((SITE / "search.html").as_uri() + "?q=load_into", "--virtual-time-budget=60000")
        results = re.search(r'<ul [^>]*class="search".*?</ul>', dom, re.DOTALL)
        self.assertIsNotNone(results, dom[-3000:])
        self.assertIn("use/python.html", results[0])
        self.assertIn("reference/python/torch.html", results[0])
        self.assertEqual(asked, [])

    def test_a_word_that_is_typed_is_found(self):
        for word, page in ("load_into", "reference/python/torch.html"), ("plane_entropy", "reference/thalia.html"):
            hits = self.probe("site_search.html", "WORD", word)
            self.assertTrue([hit for hit in hits if hit.startswith(page)], (word, hits))

    def test_every_page_fits_and_can_be_read(self):
        """On a telephone, the guides on a wide screen too: no text is pale, and nothing is loaded from elsewhere."""
        names = [str(path.relative_to(SITE)) for path in pages()]
        looks = [[name, 390, theme] for name in names for theme in ("light", "dark")]
        looks += [[name, 1280, theme] for name in names if name.startswith("use/") for theme in ("light", "dark")]
        seen = self.probe("site_probe.html", "LOOKS", looks, "--window-size=1400,900")
        self.assertEqual(len(seen), len(looks), seen)
        kinds = 0
        for (name, width, theme), page in zip(looks, seen, strict=True):
            with self.subTest(page=name, width=width, theme=theme):
                self.assertEqual([page["page"], page["width"], page["wide"]], [name, width, []])
                self.assertEqual(page["pale"], [])
                self.assertEqual(page["elsewhere"], [])
                self.assertGreater(page["loaded"], 5)
                self.assertTrue(page["light"] > 0.8 if theme == "light" else page["light"] < 0.05, page["light"])
                kinds += page["kinds"]
        self.assertGreater(kinds, 2000)

    def test_what_a_page_asks_a_network_for_would_be_heard(self):
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder, "page.html")
            page.write_text(
                '<!DOCTYPE html><img src="https://example.com/a.png"><script src="http://fonts.googleapis.com/a.js"></script>',
                encoding="utf-8",
            )
            _, _, asked = self.browse(page.as_uri(), "--virtual-time-budget=10000")
            self.assertEqual(sorted(asked), ["CONNECT example.com:443", "GET http://fonts.googleapis.com/a.js"])

    def test_a_page_follows_the_theme_of_the_system(self):
        for option, dark in ([], False), (["--blink-settings=preferredColorScheme=0"], True):
            (page,) = self.probe("site_probe.html", "LOOKS", [["use/python.html", 390, ""]], *option)
            self.assertEqual(page["light"] < 0.05, dark, page["light"])
            self.assertGreater(page["kinds"], 20)
            self.assertEqual(page["pale"], [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
