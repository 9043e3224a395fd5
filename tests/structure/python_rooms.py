"""The rooms of the Python package: its packages, its public modules, and which of them imports which.

docs/contribute/development.md says what each room is for. A new room is added here first.
"""

import ast
from pathlib import Path

PACKAGE = "python/thalia_checkpoint"
# Modules at the top that all rooms may import. They import each other, without a circle.
BASE = (
    "_core", "_html", "_keywords", "_leaves", "_library", "_log", "_missing", "_progress", "_support", "_types",
    "_warn", "errors",
)  # fmt: skip
# Modules at the top that belong to a room of another name.
PARTS = {
    "_deepspeed_objects": "deepspeed",
    "_trainer_callback": "transformers",
    "_trainer_folder": "transformers",
}
# What a room may import, besides itself and BASE. None leads back up.
ROOMS = {
    "_files": (),
    "_objects": ("_files",),
    "_operations": ("_files",),
    "_jax": ("_files", "_objects"),
    "numpy": ("_files",),
    "store": ("_files", "_objects"),
    "_distributed": ("_files",),
    "torch": ("_distributed", "_files", "_objects", "store"),
    "dcp": ("_distributed", "_files", "torch"),
    "brain": ("_files", "_objects", "_operations", "torch"),
    "loom": (),
    "flax": ("_files", "numpy"),
    "orbax": ("_files", "_jax"),
    "accelerate": ("torch",),
    "deepspeed": ("_files", "torch"),
    "mithril": ("_files", "_operations", "deepspeed", "orbax", "torch"),
    "lightning": ("_files", "torch"),
    "transformers": ("_files", "_operations", "torch"),
    # The names that users import, and what hands what torch needs to _files and _objects. The modules of _operations
    # are imported by texts, when one of their names is asked for.
    "__init__": ("_files", "_objects", "dcp", "torch"),
    # python -m thalia_checkpoint: the program.
    "__main__": (),
}
MOST_FILES = 40


def _modules(root):
    """{dotted name: path} of the package; of a package within it its __init__, by the package's name."""
    package = root / PACKAGE
    found = {"_core": package / "_core"}  # compiled
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package).with_suffix("").parts
        found[".".join(parts[:-1] if len(parts) > 1 and parts[-1] == "__init__" else parts)] = path
    return found


def _targets(node, package, modules):
    """The modules that an import of a module of `package` (a tuple of names) reads."""
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
        return {name.partition(".")[2] or "__init__" for name in names if name.split(".")[0] == "thalia_checkpoint"}
    if node.level:
        where = [*package[: len(package) - node.level + 1], *(node.module or "").split(".")]
    elif (node.module or "").split(".")[0] == "thalia_checkpoint":
        where = node.module.split(".")[1:]
    else:
        return set()
    where = ".".join(part for part in where if part)
    found = set()
    for alias in node.names:
        inner = f"{where}.{alias.name}".lstrip(".")
        found.add(inner if inner in modules else where or "__init__")
    return found


def _imports(tree, package, modules):
    """(line, module) of each import, also within functions. What only type checkers read is none."""
    todo = [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            todo += node.orelse
            continue
        if isinstance(node, ast.Import | ast.ImportFrom):
            for target in _targets(node, package, modules):
                yield node.lineno, target
        todo += ast.iter_child_nodes(node)


def arrows(root):
    """(path, line, module, module that it imports), in order."""
    modules = _modules(root)
    found = []
    for name, path in modules.items():
        if path.suffix != ".py":
            continue
        package = tuple(path.relative_to(root / PACKAGE).parts[:-1])
        tree = ast.parse(path.read_text(encoding="utf-8"))
        shown = path.relative_to(root).as_posix()
        found += [(shown, line, name, target) for line, target in _imports(tree, package, modules)]
    return sorted(found)


def room_of(module):
    """None for what all may import."""
    top = module.split(".")[0]
    return None if top in BASE else PARTS.get(top, top)


def room_violations(root, rooms=None):
    """One sentence for each module outside of the rooms, and each import against the table."""
    rooms = ROOMS if rooms is None else rooms
    found = [
        f"{path.relative_to(root).as_posix()}: in no room: {', '.join(rooms)}"
        for name, path in _modules(root).items()
        if room_of(name) not in (None, *rooms)
    ]
    for path, line, name, target in arrows(root):
        room, other = room_of(name), room_of(target)
        if other is None or other == room or room not in (None, *rooms):
            continue
        if room is None or other not in rooms[room]:
            found.append(f"{path}:{line}: {room or 'the base'} must not import {other}")
    return found


def idle_arrows(root, rooms=None):
    """Arrows and rooms of the table that no import and no module is an example of."""
    rooms = ROOMS if rooms is None else rooms
    used = {(room_of(name), room_of(target)) for _, _, name, target in arrows(root)}
    there = {room_of(name) for name in _modules(root)}
    idle = [f"{room} -> {other}" for room, others in rooms.items() for other in others if (room, other) not in used]
    return [room for room in rooms if room not in there] + idle


def table_circles(rooms=None):
    """Rooms that see a room that is below them in the table, or that is not there."""
    rooms = ROOMS if rooms is None else rooms
    order = list(rooms)
    return [
        f"{room} -> {other}"
        for room, others in rooms.items()
        for other in others
        if other not in order[: order.index(room)]
    ]


def circles(root):
    """Modules that import themselves by way of others, sorted."""
    sees = {}
    for _, _, name, target in arrows(root):
        sees.setdefault(name, set()).add(target)

    def reach(module):
        seen, todo = set(), [*sees.get(module, ())]
        while todo:
            if (each := todo.pop()) not in seen:
                seen.add(each)
                todo += sees.get(each, ())
        return seen

    return sorted(module for module in sees if module in reach(module))


def late_imports(root):
    """path:line of each import of a module that follows one of its definitions. Those within functions do not count."""
    found = []
    for path in _modules(root).values():
        if path.suffix != ".py":
            continue
        begun = False
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            begun |= isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            if begun and isinstance(node, ast.Import | ast.ImportFrom):
                found.append(f"{path.relative_to(root).as_posix()}:{node.lineno}")
    return found


def crowded_folders(root):
    """(folder, files) of each folder of the package with more files than can be looked through."""
    package = Path(root, PACKAGE)
    counts = {
        folder: sum(path.suffix == ".py" for path in folder.iterdir())
        for folder in (package, *sorted(path for path in package.rglob("*") if path.is_dir()))
    }
    return [(folder.relative_to(root).as_posix(), count) for folder, count in counts.items() if count > MOST_FILES]
