"""thalia plot: pictures parsed as XML, and their points compared with what the files say.

plot_test.py THALIA MAKE_FILES
"""

import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

THALIA, MAKE_FILES = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
SVG = "{http://www.w3.org/2000/svg}"
ODD_NAME = '<odd & "name">'


def of_class(root, name):
    return [group for group in root.iter(f"{SVG}g") if group.get("class") == name]


def axis(root, name, coordinate):
    """A function from pixels to values, through the first and the last tick."""
    (group,) = of_class(root, name)
    ticks = [
        (float(line.get(coordinate)), float(line.get("data-value")))
        for line in group.iter(f"{SVG}line")
    ]
    (low, zero), (high, value) = ticks[0], ticks[-1]
    assert zero == 0 and len(ticks) >= 4
    return lambda pixel: (pixel - low) / (high - low) * value


class PlotTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="thalia-plot-")
        subprocess.run([MAKE_FILES, cls.folder.name], check=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

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
        self.assertEqual(
            marks, [("0", "328"), ("10000", "350"), ("20000", "400"), ("30000", "4")]
        )
        (pruning,) = of_class(root, "pruning")
        self.assertEqual((pruning.get("data-x"), pruning.get("data-neurons")), ("45000", "328"))
        self.assertEqual(
            pruning.find(f"{SVG}title").text, "45,000: striatum -234 synapses (consolidation)"
        )
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
        self.assertNotIn("href", text)
        self.assertNotIn("\x07", text)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
