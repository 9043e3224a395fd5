"""The stub of the compiled module says what the module has."""

import ast
from pathlib import Path

from thalia_checkpoint import _core

STUB = Path(_core.__file__).with_name("_core.pyi")


def arguments(function):
    """Names of those that can be given by name, and a place for each of the others."""
    by_place = ["_"] * len(function.args.posonlyargs)
    return (*by_place, *(argument.arg for argument in function.args.args))


def in_stub(body):
    """Classes with their members, functions with their arguments, and properties without."""
    found = {}
    for node in body:
        if isinstance(node, ast.ClassDef):
            found[node.name] = in_stub(node.body)
        # What Python 3.12 makes of the buffer protocol.
        elif isinstance(node, ast.FunctionDef) and node.name != "__buffer__":
            is_property = any(ast.unparse(decorator) == "property" for decorator in node.decorator_list)
            found[node.name] = None if is_property else arguments(node)
    return found


def in_module(thing):
    """The same of the module itself."""
    found = {}
    for name, value in vars(thing).items():
        if isinstance(value, type):
            found[name] = in_module(value)
        elif isinstance(value, property):
            found[name] = None
        elif signatures := getattr(value, "__nb_signature__", ()):
            found[name] = arguments(ast.parse(f"{signatures[0][0]}: ...").body[0])
    return found


def test_the_stub_has_what_the_module_has():
    assert in_stub(ast.parse(STUB.read_text()).body) == in_module(_core)
