"""The pages of thalia report and the pictures of thalia plot in a browser, Debian's chromium.

browser_test.py THALIA MAKE_FILES
"""

import html
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from pictures import numpy, png_pixels, write_safetensors

THALIA, MAKE_FILES = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
if not CHROMIUM:
    print("skipped: there is no chromium")
    sys.exit(77)

# The narrowest window of a browser without a screen is wider than a phone; a frame may be as narrow
# as one likes, and a document in srcdoc may be looked into.
FRAME = """<!DOCTYPE html><meta name="color-scheme" content="light dark"><style>body{{margin:0}}
iframe{{border:0;width:{width}px;height:{height}px}}</style><iframe srcdoc="{page}"></iframe><script>
const frame = document.querySelector("iframe");
frame.onload = () => {{
  const root = frame.contentDocument.documentElement;
  document.documentElement.dataset.seen =
      [frame.contentWindow.innerWidth, root.clientWidth, root.scrollWidth].join(" ");
}};
</script>"""


class BrowserTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="thalia-browser-", ignore_cleanup_errors=True)
        cls.addClassCleanup(cls.folder.cleanup)
        cls.path = pathlib.Path(cls.folder.name)
        subprocess.run([MAKE_FILES, cls.folder.name], check=True)
        random = numpy.random.default_rng(5)
        before = {f"transformer.h.{i}.attention.c_proj.weight": random.normal(size=(90, 40)) for i in range(30)}
        before["<script>alert(1)</script>"] = random.normal(size=8)
        before["without_any_place_to_break_" * 8] = random.normal(size=8)
        after = {name: array * random.uniform(0.9, 1.1) for name, array in before.items()}
        write_safetensors(cls.path / "before.safetensors", before)
        write_safetensors(cls.path / "after.safetensors", after)
        for command in (
            "delta basic.thalia grown.thalia later.delta.thalia",
            "report after.safetensors before.safetensors -o model.html",
            "report later.delta.thalia basic.thalia -o delta.html",
            "plot weights after.safetensors -o weights.svg",
            "plot diff before.safetensors after.safetensors -o diff.svg",
            "plot chain later.delta.thalia -o chain.svg",
            "plot growth grown.thalia -o growth.svg",
        ):
            subprocess.run([THALIA, *command.split()], cwd=cls.path, check=True, capture_output=True)

    def browse(self, name, *options, dark=False):
        """What the browser prints; nothing may appear on the page's console."""
        theme = ["--force-dark-mode", "--blink-settings=preferredColorScheme=0"] if dark else []
        result = subprocess.run(
            [
                CHROMIUM,
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--hide-scrollbars",
                "--enable-logging=stderr",
                f"--user-data-dir={self.path / 'profile'}",
                *theme,
                *options,
                (self.path / name).as_uri(),
            ],
            capture_output=True,
            text=True,
            timeout=600,
            check=True,
        )
        self.console = [line for line in result.stderr.splitlines() if ":CONSOLE" in line]
        return result.stdout

    def screenshot(self, name, width, height, dark=False):
        image = self.path / "screen.png"
        image.unlink(missing_ok=True)
        self.browse(name, f"--window-size={width},{height}", f"--screenshot={image}", dark=dark)
        self.assertEqual(self.console, [])
        pixels = png_pixels(image.read_bytes())[:, :, :3]
        self.assertEqual(pixels.shape[:2], (height, width))
        return pixels

    def framed(self, name, width, height):
        page = html.escape((self.path / name).read_text(encoding="utf-8"), quote=True)
        (self.path / "framed.html").write_text(FRAME.format(width=width, height=height, page=page), encoding="utf-8")
        return "framed.html"

    def check_themes(self, name, width, height):
        light = self.screenshot(name, width, height)
        dark = self.screenshot(name, width, height, dark=True)
        for pixels, least, most in (light, 200, 255), (dark, 0, 60):
            # The background, and ink on it.
            background = pixels.reshape(-1, 3).mean(axis=1)
            self.assertTrue(least <= numpy.median(background) <= most, (name, width))
            ink = numpy.abs(background - numpy.median(background)) > 60
            self.assertTrue(0.003 < ink.mean() < 0.5, (name, width, ink.mean()))
        self.assertGreater((light != dark).any(axis=2).mean(), 0.5)

    def test_pages_differ_by_theme_and_are_not_blank(self):
        for name in "model.html", "delta.html":
            self.check_themes(name, 1280, 1600)
            self.check_themes(self.framed(name, 400, 1600), 500, 1600)

    def test_pictures_differ_by_theme_and_are_not_blank(self):
        for name in "weights.svg", "diff.svg", "chain.svg", "growth.svg":
            self.check_themes(name, 960, 400)

    def test_nothing_is_wider_than_the_window(self):
        for name in "model.html", "delta.html":
            for width in 320, 400, 1280:
                seen = self.browse(self.framed(name, width, 800), "--window-size=1400,900", "--dump-dom")
                self.assertEqual(self.console, [])
                inner, client, scrolled = map(int, re.search('data-seen="(.*?)"', seen)[1].split())
                self.assertEqual(inner, width)
                self.assertEqual(scrolled, client, (name, width))

    def test_a_heading_sorts_its_table(self):
        text = (self.path / "model.html").read_text(encoding="utf-8")
        click = """<script>
const table = [...document.querySelectorAll("#tensors table")][0];
const names = () => [...table.tBodies[0].rows].map(row => row.cells[0].textContent.length);
const sizes = () => [...table.tBodies[0].rows].map(row => Number(row.cells[3].dataset.value));
const press = column => table.tHead.rows[0].cells[column].querySelector("button").click();
const falls = list => list.every((value, i) => i === 0 || list[i - 1] >= value);
const before = sizes().length;
press(3);
const seen = [falls(sizes())];
press(3);
seen.push(falls(sizes().reverse()), sizes().length === before);
press(0);
seen.push(names()[0] === 25);
document.documentElement.dataset.seen = seen.join(" ");
</script></body>"""
        (self.path / "sorted.html").write_text(text.replace("</body>", click), encoding="utf-8")
        dom = self.browse("sorted.html", "--dump-dom")
        self.assertEqual(self.console, [])
        self.assertEqual(re.search('data-seen="(.*?)"', dom)[1], "true true true true")

    def test_the_console_would_be_heard(self):
        text = (self.path / "model.html").read_text(encoding="utf-8")
        for wrong in '<img src="/elsewhere.png">', "<script>fail()</script>":
            (self.path / "wrong.html").write_text(text.replace("</body>", wrong + "</body>"), encoding="utf-8")
            self.browse("wrong.html", "--dump-dom")
            self.assertTrue(self.console, wrong)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
