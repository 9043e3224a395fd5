"""What the docstrings of the package's public names are held to, the examples in them, and the types of options."""

import ast
import dataclasses
import importlib
import inspect
import re
import textwrap
import typing
from types import FunctionType

PACKAGE = "thalia_checkpoint"
#: What is indented after an empty line, which the documentation site shows as code.
EXAMPLE = re.compile(r"(?:^|\n\n)((?:    .*\n?|\n(?=    ))+)")


def public(module):
    """What a module exports, and the public members of its classes: name, thing and its class."""
    exported = importlib.import_module(module)
    for name in exported.__all__:
        thing = getattr(exported, name)
        if isinstance(thing, type | FunctionType):
            yield f"{module}.{name}", thing, None
        for member, value in vars(thing).items() if isinstance(thing, type) else ():
            if not member.startswith("_") and isinstance(value, FunctionType | property | staticmethod | classmethod):
                yield f"{module}.{name}.{member}", getattr(thing, member), thing


def document(thing):
    """Its docstring, of a method that takes the place of another that one's; none that Python made itself."""
    text = inspect.getdoc(thing) if not isinstance(thing, type) else thing.__doc__ or ""
    made = isinstance(thing, type) and (dataclasses.is_dataclass(thing) or issubclass(thing, tuple))
    return "" if text is None or (made and text.startswith(f"{thing.__name__}(")) else text


def raised(function):
    """Names of the exceptions that are in its body."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "make_error":
            yield ast.unparse(node.args[0])
        elif isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            name = ast.unparse(node.exc.func)
            if name[0].isupper():
                yield name


def body(thing):
    """The function whose errors its docstring tells: of a class, the one that makes it."""
    if isinstance(thing, type):
        return vars(thing).get("__post_init__" if dataclasses.is_dataclass(thing) else "__init__")
    return thing.fget if isinstance(thing, property) else thing


def undocumented(module):
    return [name for name, thing, _ in public(module) if not document(thing)]


def untold_errors(module):
    """Exceptions that a public function raises itself, and neither its docstring nor its class's names."""
    found = []
    for name, thing, owner in public(module):
        function = body(thing)
        if isinstance(function, FunctionType):
            text = document(thing) + (function.__doc__ or "") + (document(owner) if owner else "")
            found += [f"{name}: {error}" for error in raised(function) if error not in text]
    return found


def untyped_options(module):
    """Public functions with **options of any name, in which no checker of types sees a misspelt one."""
    found = []
    for name, thing, owner in public(module):
        function = vars(thing).get("__init__") if isinstance(thing, type) else thing
        function = inspect.unwrap(function) if callable(function) else None
        if not isinstance(function, FunctionType) or not function.__module__.startswith(PACKAGE):
            continue
        # Methods that another package calls have the arguments that it gives.
        bases = owner.__mro__[1:] if owner else ()
        foreign = any(function.__name__ in vars(base) for base in bases if not base.__module__.startswith(PACKAGE))
        for signature in typing.get_overloads(function) or [function]:
            for parameter in inspect.signature(signature).parameters.values():
                open_ended = parameter.kind is parameter.VAR_KEYWORD and "Unpack[" not in str(parameter.annotation)
                if open_ended and not foreign:
                    found.append(name)
    return sorted(set(found))


def without_repr(module):
    """Public classes of which a notebook shows an address."""
    return [
        name
        for name, thing, owner in public(module)
        if owner is None
        and isinstance(thing, type)
        and thing.__module__.startswith(PACKAGE)
        and thing.__repr__ is object.__repr__
        and not getattr(thing, "_is_protocol", False)
    ]


def examples(module):
    """Name and code of each; parts of one docstring are one example."""
    named = [(module, importlib.import_module(module)), *((name, thing) for name, thing, _ in public(module))]
    for name, thing in named:
        text = thing.__doc__ if thing is named[0][1] else document(thing)
        parts = [textwrap.dedent(part) for part in EXAMPLE.findall(inspect.cleandoc(text or ""))]
        if parts:
            yield name.removeprefix(f"{PACKAGE}."), "\n\n".join(parts)


def run(name, code, before):
    """before: names that the example takes for given."""
    names = {}
    exec(textwrap.dedent(before), names)
    exec(compile(code, f"the docstring of {name}", "exec"), names)
    return names
