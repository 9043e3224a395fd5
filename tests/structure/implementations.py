"""A page of docs/format/ has one implementation: the page names its folder, and no other folder reads its keys.

A key is a word that the page has in a JSON or TOML text, or first in a row of a table, or that it calls a magic.
Only words that can be told from others count: with an underscore, a dot inside, or in capitals, and of one page.
Reading a key is comparing with it or looking it up; what prints a word, or names it in a message, is no reader.
"""

import re
from collections import defaultdict

NAMED = re.compile(r"^Implemented in ((?:[^.`\n]|`[^`]*`|\n(?!\n))*)\.", re.MULTILINE)
FOLDER = re.compile(r"`((?:src|python)/[\w/]+/)`")

# What nothing implements, and why.
NO_IMPLEMENTATION = {"examples.md": "shows the bytes of files that the other pages describe"}
# Pages of more than one folder, and why.
MORE_FOLDERS = {
    "format.md": "src/format has the structures, src/container what is done with them",
    "loom.md": "src/formats/hugging_face makes a network of a decoder, and has no keys of loom",
    "mithril.md": "describes three formats of one program",
    "npz.md": "the program and mithril's folders write arrays too, with the headers and types of src/formats/source",
    "pt.md": "src/formats/pickle reads the pickles of src/formats/pt",
    "states.md": "src/state/value has the trees of values, which are edited and compared without a state",
}
# Who reads a page's keys elsewhere, and why.
READERS = {
    "python/thalia_checkpoint/brain/_curriculum.py": "writes and reads what a trainer of Python keeps in training_info",
    "python/thalia_checkpoint/brain/_decode.py": "makes dataclasses, enums and sets of nodes, which only Python can",
    "python/thalia_checkpoint/brain/_metadata.py": "puts the history, which the library reads, in its place in a dict",
    "python/thalia_checkpoint/brain/_save.py": "finds the history that a brain of Python holds",
    "python/thalia_checkpoint/torch/_checkpointer.py": "sets a rule of retention in a run's configuration",
    "src/cli/command/prune.cc": "says so where no region counts silent steps",
    "src/cli/print/diff_text.cc": "prints a change of the history as events",
    "src/cli/print/json_text.cc": "leaves the history out of the metadata, as it is printed by itself",
    "src/convert/detect.cc": "tells formats apart by what their files begin with",
    "src/convert/merge_metadata.cc": "knows which members may differ between the parts that are merged",
    "src/format/foreign_file.cc": "says what a file is that was taken for a .thalia file",
    "src/formats/source/npy_type.cc": "names of types are NumPy's and torch's alike",
    "src/formats/v01/decode.cc": "0.1 keeps the version of the program under the same name",
    "src/python/brain/brain.cc": "hands the history over as a value",
    "src/store/run/python_tree.cc": "tells which keys of a tree of Python a record has",
}

TEXT = re.compile(r"```(?:json|toml)\n(.*?)```", re.DOTALL)
JSON_KEY = re.compile(r'"([A-Za-z_][\w.]*)"\s*:')
TOML_KEY = re.compile(r"(?:^|[{,])\s*([a-z_]+) =", re.MULTILINE)
FIRST_CELL = re.compile(r'^\|\s*`"?([A-Za-z_][\w.]*)"?`', re.MULTILINE)
MAGIC = re.compile(r"magic[^\n]*?[`\" ]([A-Z][A-Z0-9]{3,7})[`\"]")
CAN_BE_TOLD = re.compile(r"(?:\w*[a-z0-9]_\w+|_\w+|\w+(?:\.\w+)+|[A-Z][A-Z0-9]{3,})\Z")

LITERAL = r'"((?:[^"\\\n]|\\.)*)"'
READING = {
    ".py": (
        rf"[=!]=\s*{LITERAL}",
        rf"{LITERAL}\s*(?:not )?in\b",
        rf"\.(?:get|pop|startswith|setdefault)\({LITERAL}",
        rf"\[{LITERAL}\]",
    ),
    ".cc": (
        rf"[=!]=\s*{LITERAL}",
        rf"{LITERAL}\s*[=!]=",
        rf"\b(?:find|at|has|get|contains|starts_with|begins_with|ends_with)\((?:\w+, )?{LITERAL}",
        rf"\bfields(?:\.\w+\(|, ){LITERAL}",
        rf"\{{{LITERAL}",  # of a table
    ),
}
READING[".h"] = READING[".cc"]
COMMENT = re.compile(r"(?:^|\s)(?://|#).*$", re.MULTILINE)


def pages(root):
    return {page.name: page.read_text(encoding="utf-8") for page in sorted((root / "docs/format").glob("*.md"))}


def folders_of(text):
    named = NAMED.search(text)
    return FOLDER.findall(named[1]) if named else []


def keys_of(text):
    texts = "\n".join(TEXT.findall(text))
    words = {*JSON_KEY.findall(text), *TOML_KEY.findall(texts), *FIRST_CELL.findall(text), *MAGIC.findall(text)}
    return {word for word in words if CAN_BE_TOLD.match(word)}


def readings(root):
    """The files that read each word."""
    found = defaultdict(set)
    for folder in ("src", "python"):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in READING:
                continue
            text = COMMENT.sub("", path.read_text(encoding="utf-8"))
            for pattern in READING[path.suffix]:
                for word in re.findall(pattern, text):
                    found[word.replace('\\"', "")].add(path.relative_to(root).as_posix())
    return found


def pages_without_folder(root, none=None, more=None):
    """One sentence for each page that does not say which folder implements it."""
    none = NO_IMPLEMENTATION if none is None else none
    more = MORE_FOLDERS if more is None else more
    found = []
    for name, text in pages(root).items():
        folders = folders_of(text)
        found += [f"{name}: {folder}: no such folder" for folder in folders if not (root / folder).is_dir()]
        if name in none and folders:
            found.append(f"{name}: listed as of no folder, and names {folders[0]}")
        elif name not in none and not folders:
            found.append(f"{name}: has no sentence that begins with 'Implemented in `src/…/`'")
        elif len(folders) > 1 and name not in more:
            found.append(f"{name}: names {len(folders)} folders; one implements a page")
        elif name in more and len(folders) < 2:
            found.append(f"{name}: listed as of more folders, and names one")
    return found + [f"{name}: listed, and no such page" for name in (*none, *more) if name not in pages(root)]


def second_readers(root, readers=None):
    """One sentence for each key of a page that is read outside of its folders."""
    readers = READERS if readers is None else readers
    texts = pages(root)
    of_page = {name: keys_of(text) for name, text in texts.items()}
    reading = readings(root)
    found, used = [], set()
    for name, keys in of_page.items():
        folders = tuple(folders_of(texts[name]))
        if not folders:
            continue
        for key in sorted(keys):
            if any(key in others for other, others in of_page.items() if other != name):
                continue
            for path in sorted(reading.get(key, ())):
                if path.startswith(folders):
                    continue
                if path in readers:
                    used.add(path)
                else:
                    found.append(f"{path}: reads {key!r}, which is {name}'s: that is implemented in {folders[0]}")
    return found + [f"{path}: listed, and reads no page's keys" for path in readers if path not in used]
