"""The stub of the compiled module says what each function gives and takes."""

import ast
from pathlib import Path

from thalia_checkpoint import _core

STUB = Path(_core.__file__).with_name("_core.pyi")
#: Types that say too little of a result.
VAGUE = {"object", "Any", "dict", "list", "tuple"}


def functions(body, owner=""):
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from functions(node.body, f"{node.name}.")
        elif isinstance(node, ast.FunctionDef):
            yield f"{owner}{node.name}", node


def arguments(function):
    every = function.args
    return [*every.posonlyargs, *every.args, *every.kwonlyargs, *filter(None, (every.vararg, every.kwarg))]


FUNCTIONS = list(functions(ast.parse(STUB.read_text(encoding="utf-8")).body))


def test_the_stub_has_what_the_module_has():
    named = {name for name, value in vars(_core).items() if hasattr(value, "__nb_signature__")}
    assert named
    assert named <= {name for name, _ in FUNCTIONS}
    classes = {node.name for node in ast.parse(STUB.read_text(encoding="utf-8")).body if isinstance(node, ast.ClassDef)}
    assert classes == {name for name, value in vars(_core).items() if isinstance(value, type)}


def test_the_stub_says_what_results_are():
    vague = [name for name, of in FUNCTIONS if of.returns is None or ast.unparse(of.returns) in VAGUE]
    assert FUNCTIONS
    # What a program derived; any JSON.
    assert vague == ["ParamResolver.resolve", "FieldDiff.before", "FieldDiff.after"]


def test_the_stub_says_what_arguments_are():
    bare = [
        f"{name}({argument.arg})"
        for name, of in FUNCTIONS
        for argument in arguments(of)
        if argument.annotation is None and argument.arg != "self"
    ]
    assert bare == []
