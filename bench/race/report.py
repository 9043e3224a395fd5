"""The results as Markdown."""


def seconds_text(seconds):
    if seconds >= 0.1:
        return f"{seconds:.2f} s"
    return f"{seconds * 1e3:.2f} ms" if seconds >= 1e-4 else f"{seconds * 1e6:.0f} µs"


def number_text(value):
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def spread_text(spread):
    """The median, its least and greatest."""
    return f"{number_text(spread['median'])} ({number_text(spread['min'])} to {number_text(spread['max'])})"


def aim_text(row):
    aim = row.get("aim")
    if not aim:
        return ""
    value = seconds_text(aim["value"]) if "unit" in aim else f"{aim['value']:g}"
    return f"{aim['bound']} {value}: {'met' if aim['met'] else 'missed'}"


def table(result):
    """One race: a line for each contestant."""
    lines = ["| | time | GiB/s | ours faster by | aim |", "|---|---|---|---|---|"]
    for row in result["rows"]:
        name = f"**{row['name']}**" if row["kind"] == "ours" else row["name"]
        if "failure" in row:
            lines.append(f"| {name} | not run: {row['failure'].replace('|', '/')} | | | |")
            continue
        speed = spread_text(row["gib_per_second"]) if "gib_per_second" in row else ""
        ratio = spread_text(row["ratio"]) if "ratio" in row else ""
        time = seconds_text(row["seconds"]["median"])
        lines.append(f"| {name} | {time} | {speed} | {ratio} | {aim_text(row)} |")
    return "\n".join(lines)


def markdown(facts, results):
    parts = ["# Thalia beside its peers", ""]
    parts += [f"- {key}: {value}" for key, value in facts.items()]
    parts += [
        "",
        "Medians, with least and greatest. The last ratio is the other's time by that of the first "
        "Thalia of the table, round by round: above 1, Thalia is faster; to a floor, 1 is as fast "
        "as the machine.",
    ]
    for result in results:
        parts += ["", f"## {result['name']}", "", result["conditions"] + ".", "", table(result)]
    return "\n".join(parts) + "\n"
