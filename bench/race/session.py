"""One run of a program: the races that its options select, and their results."""

import json
import shutil
import sys

from .plot import svg
from .report import markdown, table
from .rounds import result, run_race


class Session:
    """Writes NAME.md, NAME.svg and NAME.json anew after each race."""

    def __init__(self, name, options, facts):
        self.name = name
        self.options = options
        self.facts = facts
        self.results = []

    def say(self, text):
        if sys.stderr.isatty():
            print(
                f"\r\x1b[K{text}"[: shutil.get_terminal_size().columns],
                end="",
                file=sys.stderr,
                flush=True,
            )

    def wants(self, name):
        return not self.options.only or any(word in name for word in self.options.only)

    def race(self, race):
        if not self.wants(race.name):
            return
        run_race(race, self.options.rounds, self.say)
        self.say("")
        self.results.append(result(race))
        self.write()
        print(f"\n{race.name}\n{table(self.results[-1])}", flush=True)

    def write(self):
        out = self.options.out
        out.mkdir(parents=True, exist_ok=True)
        (out / f"{self.name}.md").write_text(markdown(self.facts, self.results), encoding="utf-8")
        (out / f"{self.name}.svg").write_text(svg(self.results), encoding="utf-8")
        samples = {"facts": self.facts, "results": self.results}
        (out / f"{self.name}.json").write_text(json.dumps(samples, indent=1) + "\n", encoding="utf-8")
