"""The parts of bench/peers.py and bench/figures.py that need no peers.

peers_test.py BENCH_FOLDER
"""

import importlib
import pathlib
import sys
import tempfile
import unittest
import xml.dom.minidom

sys.path.insert(0, sys.argv[1])
figures = importlib.import_module("figures")
disk, environment, plot, report, rounds, training = (
    importlib.import_module(f"race.{name}") for name in ("disk", "environment", "plot", "report", "rounds", "training")
)


def race_of(*contestants, **more):
    return rounds.Race("a race", "anywhere", list(contestants), **more)


def steady(name, kind, *seconds):
    times = iter((99.0, *seconds))  # the first round does not count
    return rounds.Contestant(name, lambda: next(times), kind=kind)


class Rounds(unittest.TestCase):
    def test_everybody_runs_once_a_round(self):
        for count in range(1, 8):
            for round_number in range(20):
                self.assertEqual(sorted(rounds.order(count, round_number)), list(range(count)))

    def test_each_comes_before_and_after_each_other(self):
        before = set()
        for round_number in range(10):
            order = rounds.order(5, round_number)
            before |= {(a, b) for i, a in enumerate(order) for b in order[i + 1 :]}
        self.assertEqual(len(before), 5 * 4)

    def test_ratios_are_taken_in_a_round(self):
        race = race_of(
            steady("floor", "floor", 1, 2, 3),
            steady("we", "ours", 2, 2, 2),
            steady("they", "peer", 4, 10, 2),
            bytes=2**31,
            aims={"they": ("at least", 2.5), "floor": ("at most", 0.9)},
        )
        rounds.run_race(race, 3)
        floor, we, they = rounds.result(race)["rows"]
        self.assertEqual(they["ratio"], {"median": 2, "min": 1, "max": 5})
        self.assertEqual(they["aim"], {"bound": "at least", "value": 2.5, "met": False})
        self.assertEqual(floor["ratio"], {"median": 1, "min": 0.5, "max": 1.5})
        self.assertFalse(floor["aim"]["met"])
        self.assertNotIn("ratio", we)
        self.assertEqual(we["gib_per_second"], {"median": 1, "min": 1, "max": 1})

    def test_seconds_have_limits_too(self):
        quick, slow = steady("quick", "ours", 1e-5, 3e-5), steady("slow", "ours", 1, 1)
        quick.limit, slow.limit = 2e-5, 0.5
        race = race_of(quick, slow)
        rounds.run_race(race, 2)
        self.assertEqual(
            [report.aim_text(row) for row in rounds.result(race)["rows"]],
            ["at most 20 µs: met", "at most 0.50 s: missed"],
        )

    def test_a_failure_is_a_row(self):
        def fail():
            raise rounds.Unable("not installed\nat all")

        race = race_of(steady("we", "ours", 1, 1), rounds.Contestant("they", fail))
        rounds.run_race(race, 2)
        self.assertEqual(
            rounds.result(race)["rows"][1],
            {"name": "they", "kind": "peer", "failure": "not installed"},
        )
        self.assertIn("| they | not run: not installed |", report.table(rounds.result(race)))

    def test_a_failure_of_ours_leaves_no_ratios(self):
        def fail():
            raise ValueError

        race = race_of(rounds.Contestant("we", fail, kind="ours"), steady("they", "peer", 1))
        rounds.run_race(race, 1)
        row = rounds.result(race)["rows"][1]
        self.assertNotIn("ratio", row)
        self.assertIn("ValueError", report.table(rounds.result(race)))


class Report(unittest.TestCase):
    def result(self):
        race = race_of(
            steady("we", "ours", 0.5, 0.25, 0.5),
            steady("<they>", "peer", 1, 1, 1),
            bytes=2**30,
            aims={"<they>": ("at least", 2)},
        )
        rounds.run_race(race, 3)
        return rounds.result(race)

    def test_table(self):
        self.assertEqual(
            report.table(self.result()).splitlines()[2:],
            [
                "| **we** | 0.50 s | 2.00 (2.00 to 4.00) |  |  |",
                "| <they> | 1.00 s | 1.00 (1.00 to 1.00) | 2.00 (2.00 to 4.00) | at least 2: met |",
            ],
        )

    def test_picture_is_xml_with_a_bar_a_row(self):
        picture = xml.dom.minidom.parseString(plot.svg([self.result()]))
        self.assertEqual(len(picture.getElementsByTagName("rect")), 1 + 2)
        self.assertIn("they", picture.toxml())


class Disk(unittest.TestCase):
    def test_folders_are_many_files(self):
        with tempfile.TemporaryDirectory() as name:
            inner = pathlib.Path(name, "a/b")
            inner.mkdir(parents=True)
            (inner / "c").write_bytes(b"1234")
            disk.make_durable(pathlib.Path(name, "a"))
            disk.warm(pathlib.Path(name, "a"))
            self.assertEqual(disk.files_of(pathlib.Path(name, "a")), [inner / "c"])
            disk.remove(pathlib.Path(name, "a"))
            disk.remove(pathlib.Path(name, "never"))
            self.assertEqual(list(pathlib.Path(name).iterdir()), [])


class Figures(unittest.TestCase):
    def test_runs_that_are_not_taken_again_stay(self):
        commands = [section.command(smoke=False) for section in figures.SECTIONS]
        text = figures.ROOT.joinpath("bench/figures.md").read_text(encoding="utf-8")
        table = figures.read(text)
        self.assertEqual(figures.document(table, commands), text)

        kept, again, gone = next(iter(table.runs)), list(table.runs)[-1], "no_benchmark --mib 1"
        table.facts["build"] = "another"
        table.runs[again] = [f"| **`{again}`**, now | | | | | |"]
        table.runs[gone] = [f"| **`{gone}`**, then | | | | | |"]
        found = figures.read(figures.document(table, commands))
        self.assertEqual(found.facts["build"], "another")
        self.assertEqual(found.runs[kept], table.runs[kept])
        self.assertEqual(found.runs[again], table.runs[again])
        self.assertNotIn(gone, found.runs)


class Parts(unittest.TestCase):
    def test_requirements_are_pinned(self):
        wanted = environment.requirements(environment.REQUIREMENTS.read_text(encoding="utf-8"))
        self.assertIn("torch==", "".join(wanted))
        for requirement in wanted:
            self.assertRegex(requirement, r"^[a-z0-9-]+==[0-9.]+$")

    def test_training_state_has_about_the_size(self):
        for size in 1 << 22, 1 << 28, 1 << 32:
            width, layers = training.dimensions(size)
            self.assertAlmostEqual(12 * 12 * layers * width * width / size, 1, delta=0.2)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
