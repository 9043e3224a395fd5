"""Public structs that say the same: two with many fields in common become one that the other holds.

A field in common has one name and one type. What a struct has of its bases or of a member is theirs.
"""

import re
from itertools import combinations

# So many fields in common are one thing that is said twice.
MOST_IN_COMMON = 3
# Pairs that stay as they are, and why.
WRITTEN_OUT = "callers write both out by hand, {.name = …, .shape = …}, which a level of braces would make worse"
ALIKE = {
    ("AnyTensor", "TensorFacts"): "readers of a dozen formats write an AnyTensor out, and few know a role or a hash",
    ("ErrorContext", "Finding"): "a context is written out where an error is thrown, and knows when it has no offset",
    ("RegionSpec", "BrainRegion"): WRITTEN_OUT,
    ("TensorLayout", "TensorSpec"): WRITTEN_OUT,
}

STRUCT = re.compile(r"^ *struct (\w+)(?: final)?(?: : [^;{]*)? \{$", re.MULTILINE)
COMMENT = re.compile(r"//[^\n]*")
FIELD = re.compile(r"((?:const )?[\w:]+(?:<.*>)?(?: ?[&*])?) (\w+)(?:\{.*\}| = .*)?;", re.DOTALL)
NO_FIELD = re.compile(r"(?:using|friend|static|return|struct|enum|class|explicit|template)\b")


def _in_braces(text, begin):
    """What stands from there to the brace that closes the one in front."""
    depth = 1
    for i in range(begin, len(text)):
        depth += {"{": 1, "}": -1}.get(text[i], 0)
        if depth == 0:
            return text[begin:i]
    return text[begin:]


def _statements(body):
    """Those of the struct itself: bodies of functions end where they close."""
    depth, statement = 0, ""
    for char in body:
        depth += {"{": 1, "(": 1, "}": -1, ")": -1}.get(char, 0)
        statement += char
        if depth == 0 and (char == ";" or (char == "}" and re.search(r"\)[\w ]*\{", statement))):
            yield " ".join(statement.split())
            statement = ""


def fields_of(body):
    """(type, name) of each field that a struct's body declares."""
    found = set()
    for statement in _statements(COMMENT.sub("", body)):
        if NO_FIELD.match(statement):
            continue
        match = FIELD.fullmatch(statement)
        if match:
            found.add((match[1].replace("thalia::", ""), match[2]))
    return found


def structs(root):
    """(name, path, fields) of each struct in the public headers."""
    for path in sorted((root / "include").rglob("*.h")):
        text = path.read_text(encoding="utf-8")
        for match in STRUCT.finditer(text):
            yield match[1], path.relative_to(root).as_posix(), fields_of(_in_braces(text, match.end()))


def structs_that_say_the_same(root, listed=None):
    """One sentence for each two public structs with too many fields in common."""
    listed = ALIKE if listed is None else listed
    idle = set(map(frozenset, listed))
    found = []
    for (name, path, fields), (other, other_path, other_fields) in combinations(structs(root), 2):
        common = sorted(field for _, field in fields & other_fields)
        if len(common) <= MOST_IN_COMMON:
            continue
        if frozenset((name, other)) in set(map(frozenset, listed)):
            idle.discard(frozenset((name, other)))
            continue
        found.append(f"{path}: {name}, and {other_path}: {other}, both have {', '.join(common)}: one holds the other")
    return found + [f"{' and '.join(sorted(pair))}: listed, but they have less in common" for pair in idle]
