"""The published vectors show every mistake of mistakes.txt: with it, the witness reads a valid file
as something else, refuses it, or takes one that is to be refused.

Usage: mistakes_test.py, with the witness's folder in PYTHONPATH. Needs the packages xxhash,
zstandard and lz4, and is skipped (77) without them.
"""

import json
import pathlib
import sys
import types
import unittest
from collections import namedtuple

import digests

VECTORS = pathlib.Path(__file__).resolve().parents[1] / "data/vectors"
WITNESS = pathlib.Path(digests.__file__).parent
# Each takes what it needs from those before it.
MODULES = (
    "structures",
    "elements",
    "chunk_codecs",
    "digests",
    "quantized",
    "low_rank",
    "step_rows",
    "step_delta",
    "payloads",
    "regions",
    "checkpoint",
    "packed",
    "around",
    "chain",
    "describe",
)
SOURCES = {name: (pathlib.Path(__file__).parent if name == "describe" else WITNESS) / f"{name}.py" for name in MODULES}
TEXTS = {name: path.read_text(encoding="utf-8") for name, path in SOURCES.items()}
SOUND = {name: compile(text, SOURCES[name], "exec") for name, text in TEXTS.items()}
MANIFEST = json.loads((VECTORS / "manifest.json").read_text(encoding="utf-8"))


Mistake = namedtuple("Mistake", "module name right wrong")


def read_mistakes():
    module, mistakes = None, []
    for block in (pathlib.Path(__file__).parent / "mistakes.txt").read_text(encoding="utf-8").split("\n\n"):
        name, *lines = [line for line in block.strip("\n").split("\n") if not line.startswith("#")] or [""]
        if name.startswith("["):
            module = name.strip("[]")
        elif name:
            texts = ["\n".join(line[1:] for line in lines if line[0] == sign) for sign in "-+"]
            mistakes.append(Mistake(module, name, *texts))
    return mistakes


MISTAKES = read_mistakes()


def witness_with(mistake):
    """What compares files with the manifest, over modules of which one has the mistake."""
    before = {name: sys.modules.get(name) for name in MODULES}
    try:
        for name in MODULES:
            code = SOUND[name]
            if mistake and mistake.module == name:
                assert TEXTS[name].count(mistake.right) == 1, (mistake.name, TEXTS[name].count(mistake.right))
                code = compile(TEXTS[name].replace(mistake.right, mistake.wrong), SOURCES[name], "exec")
            sys.modules[name] = types.ModuleType(name)
            exec(code, sys.modules[name].__dict__)
        return sys.modules["describe"]
    finally:
        for name, module in before.items():
            sys.modules[name] = module
            if module is None:
                del sys.modules[name]


def is_read_as_published(witness, expected):
    path = VECTORS / "valid" / expected["file"]
    if witness.refusal(path) is not None:
        return expected["kind"] == "recoverable"
    # As texts, in which -0.0 is not 0.0.
    return json.dumps(witness.describe_valid(path.parent, path)) == json.dumps(expected)


def is_refused_as_published(witness, expected):
    refused = witness.refusal(VECTORS / "refused" / expected["file"], expected["with_base"])
    kind = None if expected["severity"] == "warning" else expected["class"]
    return (refused and refused.kind) == kind


def files_that_show(mistake):
    """Names of vectors, as they are found."""
    witness = witness_with(mistake)
    for kind, holds in (("valid", is_read_as_published), ("refused", is_refused_as_published)):
        for expected in MANIFEST[kind]:
            try:
                same = holds(witness, expected)
            except Exception:  # whatever stops a program that has the mistake
                same = False
            if not same:
                yield f"{kind}/{expected['file']}"


class Mistakes(unittest.TestCase):
    def test_the_witness_has_none(self):
        self.assertEqual(list(files_that_show(None)), [])

    def test_every_mistake_has_a_name_of_its_own(self):
        self.assertEqual(len({mistake.name for mistake in MISTAKES}), len(MISTAKES))
        self.assertGreater(len(MISTAKES), 150)

    def test_every_mistake_is_shown(self):
        for mistake in MISTAKES:
            with self.subTest(mistake=mistake.name):
                self.assertIsNotNone(next(files_that_show(mistake), None))


if __name__ == "__main__":
    if None in (digests.xxhash, digests.zstandard, digests.lz4_frame):
        print("skipped: the Python packages xxhash, zstandard and lz4 are not all installed")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
