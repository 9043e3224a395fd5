"""thalia plot: pictures parsed as XML, and their points compared with what the files say.

plot_test.py THALIA MAKE_FILES
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import xml.etree.ElementTree as ElementTree

from pictures import numpy, png_pixels, write_safetensors

THALIA, MAKE_FILES = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
SVG = "{http://www.w3.org/2000/svg}"
ODD_NAME = '<odd & "name">'


def of_class(root, name):
    return [group for group in root.iter(f"{SVG}g") if group.get("class") == name]


def axis(root, name, coordinate):
    """A function from pixels to values, through the first and the last tick."""
    (group,) = of_class(root, name)
    ticks = [(float(line.get(coordinate)), float(line.get("data-value"))) for line in group.iter(f"{SVG}line")]
    (low, zero), (high, value) = ticks[0], ticks[-1]
    assert zero == 0 and len(ticks) >= 4
    return lambda pixel: (pixel - low) / (high - low) * value


class Program(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="thalia-plot-")
        cls.addClassCleanup(cls.folder.cleanup)
        cls.path = pathlib.Path(cls.folder.name)
        subprocess.run([MAKE_FILES, cls.folder.name], check=True)

    def run_thalia(self, command, **more):
        return subprocess.run([THALIA, *command.split()], cwd=self.path, capture_output=True, text=True, **more)

    def picture(self, command):
        """The root of what a command draws into out.svg."""
        result = self.run_thalia(f"plot {command} -o out.svg --force")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return ElementTree.parse(self.path / "out.svg").getroot(), result.stdout


class GrowthTest(Program):
    def plot(self, name):
        subprocess.run(
            [THALIA, "plot", "growth", f"{name}.thalia", "-o", f"{name}.svg", "--force"],
            cwd=self.folder.name,
            check=True,
            capture_output=True,
        )
        return ElementTree.parse(pathlib.Path(self.folder.name, f"{name}.svg")).getroot()

    def curves(self, root):
        """Points as (step, neurons), rounded, by region."""
        step, neurons = axis(root, "x-axis", "x1"), axis(root, "y-axis", "y1")
        curves = {}
        for group in of_class(root, "region"):
            (line,) = group.iter(f"{SVG}polyline")
            points = [point.split(",") for point in line.get("points").split()]
            curves[group.get("data-region")] = [
                # Coordinates have two decimals: a step of 60,000 is within 1, a neuron of 500 too.
                (round(step(float(x)) / 100) * 100, round(neurons(float(y))))
                for x, y in points
            ]
        return curves

    def test_curves_are_the_history_up_to_what_regions_have(self):
        curves = self.curves(self.plot("grown"))
        self.assertEqual(
            curves,
            {
                "striatum": [(0, 320), (0, 320), (0, 328), (45000, 328), (50000, 328)],
                "cortex_l4": [
                    (0, 250),
                    (10000, 250),
                    (10000, 350),
                    (20000, 350),
                    (20000, 400),
                    (50000, 400),
                ],
                ODD_NAME: [(0, 0), (30000, 0), (30000, 4), (50000, 4)],
            },
        )

    def test_events_are_marked_and_prunings_apart(self):
        root = self.plot("grown")
        marks = [(m.get("data-x"), m.get("data-neurons")) for m in of_class(root, "growth")]
        self.assertEqual(marks, [("0", "328"), ("10000", "350"), ("20000", "400"), ("30000", "4")])
        (pruning,) = of_class(root, "pruning")
        self.assertEqual((pruning.get("data-x"), pruning.get("data-neurons")), ("45000", "328"))
        self.assertEqual(pruning.find(f"{SVG}title").text, "45,000: striatum -234 synapses (consolidation)")
        self.assertIsNotNone(pruning.find(f"{SVG}path"))

    def test_regions_that_went_or_came_have_curves_too(self):
        curves = self.curves(self.plot("later"))
        # cortex_l4 has 500 neurons after 250 were added; <odd …> is no more, and ends as it was.
        self.assertEqual(curves["cortex_l4"][0], (0, 250))
        self.assertEqual(curves["cortex_l4"][-1], (60000, 500))
        self.assertEqual(curves[ODD_NAME][-1], (60000, 4))
        self.assertEqual(curves["pfc"], [(0, 10), (60000, 10)])

    def test_it_has_a_title_axes_and_a_legend(self):
        root = self.plot("grown")
        self.assertEqual(root.get("aria-label"), "Neurons per region: grown.thalia")
        self.assertEqual(root.find(f"{SVG}title").text, "Neurons per region: grown.thalia")
        texts = [text.text for text in root.iter(f"{SVG}text")]
        for text in "neurons", "training step", "10,000", "growth", "pruning":
            self.assertIn(text, texts)
        (legend,) = of_class(root, "legend")
        names = [text.text for text in legend.iter(f"{SVG}text")]
        self.assertEqual(names[:3], ["striatum", "cortex_l4", ODD_NAME])

    def test_it_needs_nothing_from_elsewhere(self):
        self.plot("grown")
        text = pathlib.Path(self.folder.name, "grown.svg").read_text(encoding="utf-8")
        self.assertEqual(text.count("http"), 1)  # the name of the namespace
        self.assertIn("prefers-color-scheme:dark", text)
        self.assertNotIn("href", text)
        self.assertNotIn("\x07", text)


class WeightsTest(Program):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        random = numpy.random.default_rng(7)
        cls.tensors = {f"h.{i}.w": random.normal(size=(64, 8 + i)) for i in range(30)}
        pruned = random.normal(size=1000)
        pruned[:250] = 0
        pruned[250:252] = numpy.nan, numpy.inf
        pruned[300] = 1000
        cls.tensors |= {"pruned": pruned, "zero": numpy.zeros(9), "one": numpy.ones(5), "none": numpy.ones(0)}
        write_safetensors(cls.path / "many.safetensors", cls.tensors)

    def test_panels_are_the_largest_in_the_files_order_and_the_rest_is_named(self):
        root, said = self.picture("weights many.safetensors")
        names = [panel.get("data-name") for panel in of_class(root, "panel")]
        largest = sorted(self.tensors, key=lambda name: -self.tensors[name].size)[:24]
        self.assertEqual(names, [name for name in self.tensors if name in largest])
        note = "24 of 34 tensors are shown, the largest; 10 are left out: name some by PATTERN, or raise --most."
        self.assertIn(note, said)
        self.assertIn(note, [text.text for text in root.iter(f"{SVG}text")])
        root, said = self.picture("weights many.safetensors --most 100")
        self.assertEqual(len(of_class(root, "panel")), len(self.tensors))
        self.assertNotIn("left out", said)

    def test_bars_count_what_is_finite_not_zero_and_near(self):
        root, _ = self.picture("weights many.safetensors pruned h.3.w zero one none")
        inside = {p.get("data-name"): int(p.get("data-inside")) for p in of_class(root, "panel")}
        values = self.tensors["h.3.w"].astype("f4").astype(float)
        near = numpy.abs(values - values.mean()) <= 4 * values.std()
        self.assertEqual(inside, {"h.3.w": int(near.sum()), "pruned": 747, "zero": 0, "one": 5, "none": 0})
        texts = [text.text for text in root.iter(f"{SVG}text")]
        self.assertIn("f32 1000, 25 % zero, 1 NaN, 1 inf, 0.1 % beyond", texts)
        self.assertIn("nothing but zeros", texts)
        self.assertIn("no elements", texts)

    def test_bars_are_as_high_as_their_share(self):
        root, _ = self.picture("weights many.safetensors h.29.w")
        (panel,) = of_class(root, "panel")
        (bars,) = panel.iter(f"{SVG}path")
        heights = [float(bar.split("v-")[1].split("h")[0]) for bar in bars.get("d").split("z")[:-1]]
        values = self.tensors["h.29.w"].astype("f4").astype(float).ravel()
        low = max(values.min(), values.mean() - 4 * values.std())
        high = min(values.max(), values.mean() + 4 * values.std())
        counts, _ = numpy.histogram(values, 48, (low, high))
        counts = counts[counts > 0]
        expected = numpy.maximum(72 * counts / counts.max(), 0.75)
        self.assertLess(numpy.abs(numpy.array(heights) - expected).max(), 0.01)

    def test_every_format_is_drawn_alike(self):
        self.run_thalia("convert model.safetensors model.thalia")
        self.run_thalia("convert model.safetensors model.mckp")
        self.run_thalia("migrate model.thalia old.thalia --to 0.1")
        panels = {}
        for file in "model.safetensors", "model.thalia", "model.mckp", "old.thalia":
            root, _ = self.picture(f"weights {file}")
            panels[file] = sorted(
                (p.get("data-name").split(".")[-1], p.get("data-inside")) for p in of_class(root, "panel")
            )
            self.assertTrue(panels[file])
            self.assertEqual(panels[file], panels["model.safetensors"], file)

    def test_long_names_lose_their_middle_and_no_half_of_a_number(self):
        shown = {
            "transformer.h.11.attention.output.c_proj.weight": "transformer.h.11.a…c_proj.weight",
            "transformer.h.11.mlp.output.c_proj.weight": "transformer.h.11.m…c_proj.weight",
            "encoder.blocks.x.1234567890.self_attention.w": "encoder.blocks.x…f_attention.w",
            "without_any_place_to_break_" * 3: "without_any_place_…ace_to_break_",
            "short.name": "short.name",
        }
        tensors = {name: numpy.ones(3) for name in shown}
        write_safetensors(self.path / "long.safetensors", tensors)
        root, _ = self.picture("weights long.safetensors")
        texts = [text.text for text in root.iter(f"{SVG}text") if "panel-name" in text.get("class")]
        self.assertEqual(texts, list(shown.values()))
        self.assertLessEqual(set(shown), {title.text for title in root.iter(f"{SVG}title")})


class DiffTest(Program):
    def test_changes_are_those_of_numpy(self):
        random = numpy.random.default_rng(3)
        a = {name: random.normal(size=(40, 5)) for name in ("w", "same", "gone", "shaped", "nan")}
        a["bias"] = numpy.zeros(4)
        b = {name: array.copy() for name, array in a.items() if name != "gone"}
        b["w"] = b["w"] + 0.01 * random.normal(size=(40, 5))
        b["bias"] = numpy.ones(4)
        b["shaped"] = b["shaped"][:10]
        b["nan"][0, 0] = numpy.nan
        b["nan"][1] *= 2
        b["new"] = numpy.ones(2)
        write_safetensors(self.path / "a.safetensors", a)
        write_safetensors(self.path / "b.safetensors", b)
        root, said = self.picture("diff a.safetensors b.safetensors")
        self.assertEqual(said, "out.svg: 7 tensors\n")
        found = {g.get("data-name"): (g.get("data-change"), g.get("data-relative")) for g in of_class(root, "change")}
        self.assertEqual(list(found), ["w", "same", "shaped", "nan", "bias", "new", "gone"])
        f4 = {name: array.astype("f4").astype(float) for name, array in a.items()}
        moved = b["w"].astype("f4").astype(float) - f4["w"]
        expected = numpy.linalg.norm(moved) / numpy.linalg.norm(f4["w"])
        self.assertAlmostEqual(float(found["w"][1]), expected, delta=1e-12)
        rest = f4["nan"].ravel()[1:]
        expected = numpy.linalg.norm(f4["nan"][1]) / numpy.linalg.norm(rest)
        self.assertAlmostEqual(float(found["nan"][1]), expected, delta=1e-12)
        self.assertEqual(found["same"], ("changed", "0"))
        self.assertEqual(found["bias"], ("changed", "inf"))
        self.assertEqual(
            [found[name] for name in ("shaped", "new", "gone")],
            [("changed", ""), ("added", ""), ("removed", "")],
        )
        texts = [text.text for text in root.iter(f"{SVG}text")]
        for text in "from zero", "added", "removed", "same", "[40, 5] before, [10, 5] now":
            self.assertIn(text, texts)

    def test_files_of_two_formats_are_compared_by_name(self):
        self.run_thalia("convert model.safetensors model.thalia --force")
        root, _ = self.picture("diff model.safetensors model.thalia")
        changes = {(g.get("data-change"), g.get("data-relative")) for g in of_class(root, "change")}
        self.assertEqual(changes, {("changed", "0")})

    def test_sparse_tensors_are_compared_as_dense_ones_are(self):
        self.run_thalia("convert grown.thalia grown.safetensors --dense")
        self.run_thalia("convert later.thalia later.safetensors --dense")
        sparse, _ = self.picture("diff grown.thalia later.thalia")
        dense, _ = self.picture("diff grown.safetensors later.safetensors")
        found = [
            {
                g.get("data-name").replace("/", "."): g.get("data-relative")
                for g in of_class(root, "change")
                if g.get("data-relative")
            }
            for root in (sparse, dense)
        ]
        both = found[0].keys() & found[1].keys()
        self.assertIn("striatum.w", both)  # csr in the first
        for name in both:
            self.assertAlmostEqual(float(found[1][name]), float(found[0][name]), delta=1e-12)


class ChainTest(Program):
    def test_links_are_those_of_log(self):
        for command in (
            "delta basic.thalia grown.thalia one.delta.thalia",
            "delta one.delta.thalia later.thalia two.delta.thalia",
        ):
            self.assertEqual(self.run_thalia(command).returncode, 0)
        root, said = self.picture("chain two.delta.thalia")
        files = json.loads(self.run_thalia("log two.delta.thalia --json").stdout)["files"]
        links = [
            (link.get("data-kind"), int(link.get("data-bytes")), int(link.get("data-step")))
            for link in of_class(root, "link")
        ]
        self.assertEqual(
            links,
            [(f["kind"], f["disk_bytes"], f["training_steps"]) for f in reversed(files)],
        )
        self.assertEqual(said, "out.svg: 3 files\n")
        heights = [float(link.find(f"{SVG}rect").get("height")) for link in of_class(root, "link")]
        for height, (_, size, _) in zip(heights, links, strict=True):
            self.assertAlmostEqual(height / max(heights), size / max(s for _, s, _ in links), delta=1e-3)


class PngTest(Program):
    def test_png_has_the_size_of_the_picture_and_something_in_it(self):
        if not shutil.which("rsvg-convert"):
            if os.environ.get("CI") == "true":
                self.fail("rsvg-convert is not installed")
            self.skipTest("rsvg-convert is not installed")
        for command in "growth grown.thalia", "weights grown.thalia", "chain basic.thalia":
            root, _ = self.picture(command)
            result = self.run_thalia(f"plot {command} -o out.png --force")
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            pixels = png_pixels((self.path / "out.png").read_bytes())
            self.assertEqual(pixels.shape[:2], (2 * float(root.get("height")), 2 * float(root.get("width"))))
            self.assertEqual(pixels[0, 0, :3].tolist(), [255, 255, 255])
            colours = numpy.unique(pixels.reshape(-1, pixels.shape[2])[:, :3], axis=0)
            self.assertGreater(len(colours), 20)  # text has soft edges
            inked = (pixels[:, :, :3] < 250).any(axis=2).mean()
            self.assertTrue(0.001 < inked < 0.5, inked)

    def renderer(self, script):
        """An environment in which rsvg-convert is a script, or nowhere."""
        tools = pathlib.Path(tempfile.mkdtemp(dir=self.path))
        if script:
            (tools / "rsvg-convert").write_text("#!/bin/sh\n" + script)
            (tools / "rsvg-convert").chmod(0o755)
        return {**os.environ, "PATH": str(tools)}

    def with_renderer(self, script, out="failed.png"):
        return self.run_thalia(f"plot growth grown.thalia -o {out} --force", env=self.renderer(script))

    def test_a_renderer_that_is_missing_or_fails_leaves_nothing(self):
        for script, words in (
            ("", ["rsvg-convert", "librsvg2-bin"]),
            ("echo no room >&2\nexit 3\n", ["status 3: no room"]),
            ("kill -9 $$\n", ["status 137: it said nothing"]),
            # Signals that the program holds back or ignores are not held back from the renderer.
            ("kill -TERM $$\n", ["status 143: it said nothing"]),
            ("kill -PIPE $$\n", ["status 141: it said nothing"]),
        ):
            result = self.with_renderer(script)
            self.assertEqual((result.returncode, result.stdout), (3, ""))
            for word in ["failed.png", *words]:
                self.assertIn(word, result.stderr)
            self.assertFalse((self.path / "failed.png").exists())

    def test_a_renderer_gets_the_picture_and_may_leave_it_or_print_more_than_a_pipe_holds(self):
        self.run_thalia("plot growth grown.thalia -o drawn.svg --force")
        drawn = (self.path / "drawn.svg").read_text(encoding="utf-8")
        for script, printed in (
            ("exec /bin/cat\n", drawn),
            ("for i in 1 2 3 4 5 6 7 8 9; do printf '%099999d' 0; done\n", "0" * 899991),
            ("printf '%s|' \"$@\"\n", "--format=png|--zoom=2|--background-color=white|"),
        ):
            result = self.with_renderer(script, "printed.png")
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            self.assertEqual((self.path / "printed.png").read_text(encoding="utf-8"), printed)

    def test_a_signal_ends_the_renderer_too(self):
        words = [THALIA, "plot", "growth", "grown.thalia", "-o", "failed.png"]
        number = self.path / "number"
        environment = self.renderer(f"echo $$ >{number}\nexec /bin/sleep 600\n")
        with subprocess.Popen(words, cwd=self.path, env=environment, stderr=subprocess.PIPE) as process:
            end = time.monotonic() + 30
            while not (number.exists() and number.read_text().strip()) and time.monotonic() < end:
                time.sleep(0.01)
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(30), -signal.SIGTERM)
            self.assertFalse(pathlib.Path("/proc", number.read_text().strip()).exists())
        self.assertFalse((self.path / "failed.png").exists())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
