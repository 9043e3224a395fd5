"""What the compiler sees at once: the sources of one room, so that a private name is a room's own."""

import json
import re
from pathlib import Path

INCLUDED = re.compile(r'^#include *[<"](.*\.cc)[>"]$', re.MULTILINE)


def units(build, commands):
    """The sources of each unit that a build compiles, from its list of commands; a source alone is a unit, too."""
    for command in commands:
        unit = Path(build, command["directory"], command["file"]).resolve()
        included = [Path(file) for file in INCLUDED.findall(unit.read_text(encoding="utf-8", errors="replace"))]
        yield [Path(unit.parent, file).resolve() for file in included] or [unit]


def mixed_units(root, every):
    """Units that see the sources of several folders of src/ at once."""
    found = []
    for sources in every:
        rooms = sorted({str(file.parent.relative_to(root)) for file in sources if file.is_relative_to(root / "src")})
        if len(rooms) > 1:
            found.append(f"{', '.join(rooms)} are compiled as one")
    return sorted(set(found))


def forgotten(root, every, parts):
    """Sources of these folders of src/ that no unit holds."""
    held = {file for sources in every for file in sources}
    wanted = {file.resolve() for part in parts for file in Path(root, "src", part).rglob("*.cc")}
    return sorted(str(file.relative_to(root)) for file in wanted - held)


def of_build(build):
    return list(units(build, json.loads(Path(build, "compile_commands.json").read_text(encoding="utf-8"))))
