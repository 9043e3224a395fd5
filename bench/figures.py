#!/usr/bin/env python3
"""Every published figure, taken on an idle machine and written to one table.

Runs peers.py, small.py, formats.py and the benchmark programs one after the other, each only once the
load is below 0.5, and writes bench/figures.md: median and range, and for each run its command, date,
machine and load. Runs that are not taken again stay in the table as they are. The samples of a run are left in
BUILD/figures.
"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import re
import shlex
import subprocess
import sys
import time
from typing import NamedTuple

from peers import processor
from race.report import aim_text, number_text, seconds_text, spread_text

ROOT = pathlib.Path(__file__).resolve().parent.parent
IDLE = 0.5  # a load above this is somebody else's work
PATIENCE = 20 * 60  # seconds to wait for it
HEAD = ("", "ours", "beside", "it", "ours faster by", "aim")
COLUMNS = len(HEAD)
FACTS = ("disk folder", "memory folder", "compiler", "build", "peers")


class Section(NamedTuple):
    """A run: the words of its command behind the program, and the part of it that --only names."""

    program: str
    arguments: tuple = ()
    part: str = ""

    @property
    def name(self):
        return f"{self.program} {self.part}".strip()

    def words(self, smoke):
        return (*(("--smoke",) if smoke else self.arguments), *(("--only", self.part) if self.part else ()))

    def command(self, smoke):
        return f"{self.program} {shlex.join(self.words(smoke))}".strip()


class Table(NamedTuple):
    """What the document says: facts by name, and the lines of each run by its command."""

    facts: dict
    runs: dict


LARGE = ("--mib", "4096")
PEERS = (*LARGE, "--rounds", "5")
FORMATS = ("--mib", "1024", "--rounds", "7")
SECTIONS = (
    Section("peers.py", PEERS, "open"),
    Section("peers.py", PEERS, "save"),
    Section("peers.py", PEERS, "cold load"),
    Section("peers.py", PEERS, "warm load"),
    # Python and the library in C++ beside each other: a larger state takes longer and says the same.
    Section("peers.py", ("--mib", "1024", "--rounds", "13"), "Python"),
    Section("small.py", ("--rounds", "51"), "durable save"),
    Section("small.py", ("--rounds", "51"), "load"),
    Section("formats.py", FORMATS, "open"),
    Section("formats.py", FORMATS, "read"),
    Section("formats.py", FORMATS, "dequantize"),
    Section("formats.py", FORMATS, "convert"),
    Section("async_benchmark", LARGE, "until training goes on"),
    # Its steps take as long as their state is large: an hour at 4 GiB.
    Section("async_benchmark", ("--mib", "512"), "steps"),
    Section("stream_benchmark", LARGE),
    Section("save_benchmark", LARGE),
    Section("store_benchmark", ("--mib", "1024")),
    Section("load_benchmark", LARGE),
    Section("verify_benchmark", LARGE),
    Section("open_benchmark"),
    # The processor is what these wait for: a larger state takes longer and says the same.
    Section("compressed_benchmark", ("--mib", "1024")),
    Section("brain_benchmark"),
    Section("view_benchmark"),
    Section("precision_benchmark", ("--mib", "64")),
    Section("codec_benchmark", ("--mib", "64")),
)


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    add = parser.add_argument
    add("--build", type=pathlib.Path, default=ROOT / "build-bench", help="build folder")
    add("--out", type=pathlib.Path, default=ROOT / "bench/figures.md", help="the table")
    names = [section.name for section in SECTIONS]
    add("--only", action="append", choices=names, help="only this run; may be repeated")
    add("--smoke", action="store_true", help="tiny, on any machine: does it still run?")
    return parser.parse_args()


def wait_until_idle():
    end = time.monotonic() + PATIENCE
    while os.getloadavg()[0] >= IDLE:
        if time.monotonic() > end:
            sys.exit(f"figures.py: the load is {os.getloadavg()[0]:.2f}, expected less than {IDLE}")
        time.sleep(5)


def machine():
    """The words for this machine, of which each run may have had another one."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{processor()}, {memory:.0f} GiB, Linux {platform.release().split('-')[0]}"


def run(section, options, folder, table):
    folder.mkdir(parents=True, exist_ok=True)
    if not options.smoke:
        wait_until_idle()
    of_races = section.program.endswith(".py")
    stem = pathlib.Path(section.program).stem
    samples = folder / (f"{stem}/{stem}.json" if of_races else f"{stem}.samples.json")
    samples.unlink(missing_ok=True)
    if of_races:
        program = [ROOT / "bench" / section.program, "--build", options.build, "--out", samples.parent]
    else:
        # Google Benchmark's own measurements have no floor beside them.
        program = [options.build / "bench" / section.program, "--json", samples]
        program.append("--benchmark_filter=no such")
    command = section.command(options.smoke)
    date = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
    heading = f"**`{command}`**, {date}, {machine()}, load {os.getloadavg()[0]:.2f}, {commit()}"
    print(f"== {command}", flush=True)
    subprocess.run(list(map(str, (*program, *section.words(options.smoke)))), check=True)
    found = json.loads(samples.read_text(encoding="utf-8"))
    facts = found["facts" if of_races else "environment"]
    table.facts.update({key: facts[key] for key in FACTS if key in facts})
    rows = rows_of_races(found) if of_races else rows_of_pairs(found)
    table.runs[command] = [line_of([heading, *[""] * (COLUMNS - 1)]), *map(line_of, rows)]


def line_of(cells):
    return "|" + "|".join(f" {cell.replace('|', '/')} " if cell else " " for cell in cells) + "|"


def git(*words):
    return subprocess.run(["git", "-C", str(ROOT), *words], check=False, capture_output=True, text=True).stdout.strip()


def commit():
    # The table itself changes with each run.
    changed = git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!bench/figures.md")
    return git("describe", "--always") + ("-dirty" if changed else "")


def speed_text(size, seconds):
    return f"{number_text(size / seconds / 2**30)} GiB/s" if size else seconds_text(seconds)


def rows_of_races(found):
    """Of each race what ours takes, then a row for each other contestant."""
    rows = []
    for race in found["results"]:
        size = race.get("bytes", 0)
        ran = [row for row in race["rows"] if "failure" not in row]
        ours = speed_text(size, ran[0]["seconds"]["median"])
        if "aim" in ran[0]:
            rows.append([race["name"], ours, "", "", "", aim_text(ran[0])])
        for row in ran[1:]:
            it = speed_text(size, row["seconds"]["median"])
            ratio = spread_text(row["ratio"])
            rows.append([race["name"], ours, row["name"], it, ratio, aim_text(row)])
        for row in race["rows"]:
            if "failure" in row:
                rows.append([race["name"], "", row["name"], "not run: " + row["failure"], "", ""])
    return rows


def rows_of_pairs(found):
    rows = []
    for each in found["comparisons"]:
        if "skipped" in each:
            rows.append([each["name"], "", "", "not run: " + each["skipped"], "", ""])
            continue
        middle = len(each["pairs"]) // 2
        ours, floor = (sorted(pair[side] for pair in each["pairs"])[middle] for side in (0, 1))
        size = each["bytes"]
        ratio = spread_text({key: each[key] for key in ("median", "min", "max")})
        rows.append([each["name"], speed_text(size, ours), each["floor"], speed_text(size, floor), ratio, ""])
    return rows


def read(text):
    """The table of a document that document() wrote."""
    table = Table({}, {})
    lines = []
    for line in text.splitlines():
        if fact := re.match(r"- ([a-z ]+): (.*)", line):
            table.facts[fact[1]] = fact[2]
        if heading := re.match(r"\| \*\*`(.*)`\*\*, ", line):
            lines = table.runs.setdefault(heading[1], [])
        if line.startswith("|"):
            lines.append(line)
    return table


def document(table, commands):
    """The table: a heading line for each run, then its rows. Runs that are none any more go."""
    lines = [
        "# Figures",
        "",
        "Written by `bench/figures.py`; [README.md](README.md) states the method. Every run had the machine to",
        f"itself: it began with a load below {IDLE}. Ratios are medians with the least and the greatest; above",
        "1, ours is faster. Rates are medians, in GiB of raw bytes.",
        "",
        *[f"- {key}: {table.facts[key]}" for key in FACTS if key in table.facts],
        "",
        line_of(HEAD),
        "|" + "---|" * COLUMNS,
    ]
    for command in commands:
        lines += table.runs.get(command, [])
    return "\n".join(lines) + "\n"


def main(options):
    folder = options.build / ("figures-smoke" if options.smoke else "figures")
    out = folder / "figures.md" if options.smoke else options.out
    table = read(out.read_text(encoding="utf-8")) if out.exists() else Table({}, {})
    for section in SECTIONS:
        if options.only and section.name not in options.only:
            continue
        run(section, options, folder, table)
        commands = [each.command(options.smoke) for each in SECTIONS]
        out.write_text(document(table, commands), encoding="utf-8")
    print(out)


if __name__ == "__main__":
    try:
        main(parse())
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"figures.py: {error}")
