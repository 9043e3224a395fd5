"""The rooms of the layers: the folders that a layer is divided into, and which see which.

docs/contribute/development.md says what each room is for. A new room is added here first.
"""

import re
from collections import defaultdict

# What a room may include of its own layer, besides itself. None leads back up.
ROOMS = {
    "io": {
        "system": (),
        "memory": ("system",),
        "file": ("memory", "system"),
        "direct": ("file", "memory", "system"),
        "path": ("file", "system"),
        "output": ("file", "memory", "path", "system"),
        "folder": ("file", "output", "path", "system"),
        "storage": ("file", "folder", "path", "system"),
    },
    "codec": {
        "cpu": (),
        "changes": ("cpu",),
        "frame": (),
        "float": ("cpu",),
        "lossy": ("float",),
        "planes": ("cpu",),
        "exponents": ("cpu", "frame", "planes"),
        "rans": ("cpu", "frame", "planes"),
        "step": ("cpu", "frame"),
        "chunk": ("cpu", "exponents", "frame", "planes", "rans"),
    },
    "container": {
        "wrap": (),
        "file": ("wrap",),
        "read": ("file",),
        "plan": ("file", "read"),
        "stream": ("file", "read"),
        "write": ("plan", "file", "read", "wrap"),
        "append": ("plan", "file", "read", "write"),
        "pack": ("plan", "file", "read", "wrap", "write"),
        "background": ("plan", "write"),
        "verify": ("plan", "file", "read", "wrap", "write"),
    },
    "state": {
        "tensor": (),
        "value": ("tensor",),
        "precision": (),
        "quantize": ("precision", "tensor", "value"),
        "brain": ("precision", "quantize", "tensor", "value"),
        "growth": ("brain", "tensor", "value"),
        "low_rank": ("quantize", "tensor"),
        "delta": ("brain", "low_rank", "quantize", "tensor", "value"),
        "rebase": ("delta",),
        "diff": ("brain", "delta", "precision", "tensor", "value"),
    },
    "formats": {
        "pickle": (),
        "source": (),
        "gguf": ("source",),
        "loom": ("source",),
        "hugging_face": ("loom", "source"),
        "mckp": ("source",),
        "mithril_quantized": ("source",),
        "mst": ("source",),
        "onnx": ("source",),
        "orbax": ("source",),
        "params": ("source",),
        "gptrs": ("params", "source"),
        "safetensors": ("source",),
        "v01": ("source",),
        "weight_sync": ("safetensors", "source", "zip"),
        "zip": ("source",),
        "npz": ("source", "zip"),
        "pt": ("pickle", "source", "zip"),
    },
    "store": {
        "run": (),
        "load": ("run",),
        "follow": ("load", "run"),
        "retention": ("load", "run"),
        "save": ("load", "retention", "run"),
        "pool": ("load", "run", "save"),
    },
    "cli": {
        "documents": (),
        "terminal": (),
        "print": ("terminal",),
        "options": ("print", "terminal"),
        "tensor": ("print", "terminal"),
        "report": ("print", "tensor", "terminal"),
        "command": ("options", "print", "report", "tensor", "terminal"),
        "store": ("command", "print", "terminal"),
    },
}
# Files that stand above the rooms of their layer and see them all.
ABOVE_THE_ROOMS = ("src/cli/main.cc",)

# What a folder holds at most: more, and nobody finds a file by looking.
MOST_FILES = 40
# Folders that hold more, and why.
CROWDED = {"bench": "one program a subject, and what they share, side by side"}

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.MULTILINE)


def circles(rooms=None):
    """The rooms of each layer that lead back to themselves."""
    found = []
    for layer, sees in (ROOMS if rooms is None else rooms).items():
        for start in sees:
            seen, ahead = set(), list(sees[start])
            while ahead:
                room = ahead.pop()
                if room not in seen:
                    seen.add(room)
                    ahead += sees[room]
            if start in seen:
                found.append(f"{layer}/{start}")
    return found


def _place_of(path, public_places):
    """(layer, room) of a file of the source tree or of a public header; the room may be ''."""
    if path.startswith("include/thalia/"):
        place = public_places.get(path.removeprefix("include/thalia/"), "")
    else:
        place = path.removeprefix("src/").rpartition("/")[0]
    layer, _, room = place.partition("/")
    return layer, room


def _arrows(root, public_places):
    """(file, layer, room, included layer, its room) of every include."""
    for folder in ("src", "include"):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in (".h", ".cc"):
                continue
            name = path.relative_to(root).as_posix()
            layer, room = _place_of(name, public_places)
            for included in INCLUDE.findall(path.read_text(encoding="utf-8")):
                tree = "include/" if included.startswith("thalia/") else "src/"
                yield name, layer, room, *_place_of(tree + included, public_places)


def room_violations(root, public_places, rooms=None):
    """One sentence for each file outside of a room, and each include against the table."""
    rooms = ROOMS if rooms is None else rooms
    found = set()
    for path in sorted((root / "src").rglob("*")):
        name = path.relative_to(root).as_posix()
        layer, room = _place_of(name, public_places)
        is_source = path.suffix in (".h", ".cc") and name not in ABOVE_THE_ROOMS
        if is_source and layer in rooms and room not in rooms[layer]:
            found.add(f"{name}: not in a room of {layer}: {', '.join(rooms[layer])}")
    for name, layer, room, other_layer, other in _arrows(root, public_places):
        sees = rooms.get(layer, {}).get(room)
        if layer != other_layer or sees is None or other == room:
            continue
        if other in rooms[layer] and other not in sees:
            found.add(f"{name}: the room {layer}/{room} must not include {layer}/{other}")
    return sorted(found)


def idle_arrows(root, public_places, rooms=None):
    """Arrows and rooms of the table that no include and no file is an example of."""
    rooms = ROOMS if rooms is None else rooms
    used = {(layer, room, other) for _, layer, room, _, other in _arrows(root, public_places)}
    found = []
    for layer, sees in rooms.items():
        for room, others in sees.items():
            if not (root / "src" / layer / room).is_dir():
                found.append(f"{layer}/{room}")
            found += [f"{layer}/{room} -> {o}" for o in others if (layer, room, o) not in used]
    return found


def names_in_sight(root, rooms=None):
    """Names that two files bear of which one may include the other."""
    found = []
    for layer, sees in (ROOMS if rooms is None else rooms).items():
        names = defaultdict(set)
        for room in sees:
            for path in (root / "src" / layer / room).glob("*"):
                names[room].add(path.stem)
        for room, others in sees.items():
            for other in others:
                for name in sorted(names[room] & names[other]):
                    found.append(f"src/{layer}/{room} and {layer}/{other} both have {name}")
    return found


def tests_without_room(root, rooms=None):
    """Folders of a layer's tests that are no room of it."""
    return [
        f"tests/{layer}/{folder.name}"
        for layer, sees in (ROOMS if rooms is None else rooms).items()
        for folder in sorted((root / "tests" / layer).glob("*/"))
        if any(folder.glob("*.cc")) and folder.name not in sees
    ]


def crowded_folders(root, listed=None):
    """(folder, files) of each folder with more files than can be looked through, and of each listed for nothing."""
    listed = CROWDED if listed is None else listed
    counts = {}
    for top in ("include", "src", "tests", "bench", "examples", "python", "tools"):
        for folder in (root / top, *(path for path in (root / top).rglob("*") if path.is_dir())):
            if folder.is_dir():
                count = sum(path.suffix in (".h", ".cc", ".py") for path in folder.iterdir())
                counts[folder.relative_to(root).as_posix()] = count
    found = [(name, count) for name, count in sorted(counts.items()) if count > MOST_FILES and name not in listed]
    return found + [(name, counts.get(name, 0)) for name in listed if counts.get(name, 0) <= MOST_FILES]
