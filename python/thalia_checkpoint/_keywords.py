"""Misspelt keyword arguments: the TypeError says which one was probably meant."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from types import FunctionType
from typing import Any, TypeVar

from . import _core

_Public = TypeVar("_Public", bound=Callable[..., Any])
#: The flag, in co_flags, of a function that has **keywords.
_OPEN = 0x08


def suggests(public: _Public) -> _Public:
    """For each function and class that users call with options. A class has it for __init__() and the
    public methods, but not for methods that another package calls in place of its own."""
    if isinstance(public, FunctionType):
        suggesting: _Public = _suggesting(public)
        return suggesting
    _suggest_within(public)
    return public


def _suggest_within(public: Any) -> None:
    foreign = [base for base in public.__mro__[1:-1] if not base.__module__.startswith(f"{__package__}.")]
    for name, member in list(vars(public).items()):
        function = member.__func__ if isinstance(member, staticmethod | classmethod) else member
        if not isinstance(function, FunctionType) or not _has_options(function):
            continue
        if name == "__init__" or not (name.startswith("_") or any(name in vars(base) for base in foreign)):
            method = _suggesting(function)
            setattr(public, name, method if function is member else type(member)(method))


def _has_options(function: FunctionType) -> bool:
    return bool(function.__defaults__ or function.__kwdefaults__ or function.__code__.co_flags & _OPEN)


def _suggesting(function: Any) -> Any:
    code = function.__code__
    names = code.co_varnames[code.co_posonlyargcount : code.co_argcount + code.co_kwonlyargcount]

    @wraps(function)
    def call(*arguments: Any, **keywords: Any) -> Any:
        try:
            return function(*arguments, **keywords)
        except TypeError as error:
            explained = _explained(error, keywords, names, within=bool(code.co_flags & _OPEN))
            if explained is None:
                raise
        raise explained

    return call


def _explained(error: TypeError, keywords: dict[str, Any], names: Sequence[str], *, within: bool) -> TypeError | None:
    """within: the function hands keywords on, so that what refuses one may lie deep in it."""
    trace = error.__traceback__
    if trace is not None and trace.tb_next is not None and not within:
        return None
    # Python 3.13 ends it with a suggestion of its own, in other words.
    text = str(error).partition(". Did you mean '")[0]
    if within and trace is not None and trace.tb_next is None and " missing " in text:
        # The misspelt name went where the options go, and what it was to be is missing.
        missing = [name for name in names if f"'{name}'" in text]
        for name in keywords:
            hint = "" if name in names else _core.suggestion(name, missing)
            if hint:
                return TypeError(f"{text}; got '{name}'{hint}")
    for name in keywords:
        if name not in names and text.endswith(f"unexpected keyword argument '{name}'"):
            suggested = _core.printable(f"{text}{_core.suggestion(name, list(names))}")
            return TypeError(suggested) if suggested != text else None
    return None
