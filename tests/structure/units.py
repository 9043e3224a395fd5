"""What the compiler sees at once: the sources of one room, so that a private name is a room's own.

units.py BUILD: prints each unit that holds sources of src/ or examples/, ended by NUL, for a linter. Fails where a
source is in none.
"""

import json
import re
import sys
from pathlib import Path

INCLUDED = re.compile(r'^#include *[<"](.*\.cc)[>"]$', re.MULTILINE)


def units(build, commands):
    """Each unit that a build compiles, and its sources, from its list of commands; a source alone is a unit, too."""
    for command in commands:
        unit = Path(build, command["directory"], command["file"]).resolve()
        included = [Path(file) for file in INCLUDED.findall(unit.read_text(encoding="utf-8", errors="replace"))]
        yield unit, [Path(unit.parent, file).resolve() for file in included] or [unit]


def mixed_units(root, every):
    """Units that see the sources of several folders of src/ at once."""
    found = []
    for _, sources in every:
        rooms = sorted({str(file.parent.relative_to(root)) for file in sources if file.is_relative_to(root / "src")})
        if len(rooms) > 1:
            found.append(f"{', '.join(rooms)} are compiled as one")
    return sorted(set(found))


def sources_of(root, folders):
    return {file.resolve() for folder in folders for file in Path(root, folder).rglob("*.cc")}


def forgotten(root, every, folders):
    """Sources of these folders that no unit holds."""
    held = {file for _, sources in every for file in sources}
    return sorted(str(file.relative_to(root)) for file in sources_of(root, folders) - held)


def of_build(build):
    return list(units(build, json.loads(Path(build, "compile_commands.json").read_text(encoding="utf-8"))))


def main():
    root, folders = Path(__file__).resolve().parents[2], ("src", "examples")
    every = of_build(sys.argv[1])
    if missing := forgotten(root, every, folders):
        sys.exit("in no object of the build: " + " ".join(missing))
    wanted = sources_of(root, folders)
    sys.stdout.write("".join(f"{unit}\0" for unit, sources in every if not wanted.isdisjoint(sources)))


if __name__ == "__main__":
    main()
