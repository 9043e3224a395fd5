"""Rounds: every contestant once a round, in an order that turns; ratios are taken in a round."""

import dataclasses
import statistics
from collections.abc import Callable


class Unable(Exception):
    """A contestant that cannot take part; the text says why."""


@dataclasses.dataclass
class Contestant:
    name: str
    run: Callable[[], float]  # seconds
    prepare: Callable[[], None] = lambda: None  # before each run, not timed
    kind: str = "peer"  # or ours, or floor
    limit: float = 0  # seconds that it may take; 0 where only ratios count
    seconds: list = dataclasses.field(default_factory=list)
    failure: str = ""


@dataclasses.dataclass
class Race:
    """The first contestant of kind ours is what the others' ratios are taken to."""

    name: str
    conditions: str
    contestants: list
    bytes: int = 0  # that each handles in a run; 0 where only time counts
    # Name of a contestant: (at least or at most, the ratio to reach).
    aims: dict = dataclasses.field(default_factory=dict)

    @property
    def ours(self):
        return next(each for each in self.contestants if each.kind == "ours")


def spread(values):
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def order(count, round_number):
    """Positions of the contestants: each comes first, and next to each other's other side, by turns."""
    start = round_number // 2 % count
    turned = [*range(start, count), *range(start)]
    return turned if round_number % 2 == 0 else turned[::-1]


def run_race(race, rounds, say=lambda text: None):
    """Fills the seconds of the contestants. A first round warms up and does not count."""
    for round_number in range(-1, rounds):
        for i in order(len(race.contestants), round_number + 1):
            contestant = race.contestants[i]
            if contestant.failure:
                continue
            try:
                contestant.prepare()
                seconds = contestant.run()
            except Exception as error:  # whatever a peer does, the others go on
                text = str(error).strip().splitlines()
                contestant.failure = text[0] if text else type(error).__name__
                contestant.seconds = []
                continue
            if round_number >= 0:
                contestant.seconds.append(seconds)
            say(f"{race.name}: round {round_number + 1} of {rounds}: {contestant.name}: {seconds:.3f} s")


def ratios(race, contestant):
    """Times of ours faster, a round each; None where one of the two could not run."""
    ours = race.ours
    if contestant.failure or ours.failure or contestant is ours:
        return None
    return [theirs / own for theirs, own in zip(contestant.seconds, ours.seconds, strict=True)]


def aim_of(bound, value, reached):
    met = reached >= value if bound == "at least" else reached <= value
    return {"bound": bound, "value": value, "met": met}


def result(race):
    """The race as a JSON value."""
    rows = []
    for contestant in race.contestants:
        row = {"name": contestant.name, "kind": contestant.kind}
        if contestant.failure:
            rows.append({**row, "failure": contestant.failure})
            continue
        row |= {"all_seconds": contestant.seconds, "seconds": spread(contestant.seconds)}
        if race.bytes:
            row["gib_per_second"] = spread([race.bytes / 2**30 / s for s in contestant.seconds])
        if contestant.limit:
            row["aim"] = {**aim_of("at most", contestant.limit, row["seconds"]["median"]), "unit": "s"}
        times = ratios(race, contestant)
        if times:
            row["ratio"] = spread(times)
            if contestant.name in race.aims:
                row["aim"] = aim_of(*race.aims[contestant.name], row["ratio"]["median"])
        rows.append(row)
    return {"name": race.name, "conditions": race.conditions, "bytes": race.bytes, "rows": rows}
