"""numpy's indexing of a tensor in a file as the least that has to be read."""

from __future__ import annotations

import math
from typing import Any, NamedTuple


class Plan(NamedTuple):
    """What to read, and what to do with it then."""

    ranges: list[tuple[int, int]]
    """The range of each dimension: from and to."""
    shape: tuple[int, ...]
    """The shape of what these ranges hold."""
    rest: tuple[Any, ...]
    """The index to apply to what was read; empty if it is the result."""


def plan(index: Any, shape: tuple[int, ...]) -> Plan | None:
    """The ranges that an index of ints, slices, None and ... takes.

    None for any other index, such as an array: it may take anything. Raises IndexError as numpy
    does.
    """
    items = index if isinstance(index, tuple) else (index,)
    if not all(map(_is_basic, items)):
        return None
    taken = sum(item is not None and item is not ... for item in items)
    if taken > len(shape) or sum(item is ... for item in items) > 1:
        raise IndexError(f"too many indices: the tensor has {len(shape)} dimensions, got {taken}")
    if not any(item is ... for item in items):
        items = (*items, ...)
    ranges: list[tuple[int, int]] = []
    rest: list[Any] = []
    for item in items:
        if item is None:
            rest.append(None)
        elif item is ...:
            for extent in shape[len(ranges) : len(ranges) + len(shape) - taken]:
                ranges.append((0, extent))
                rest.append(slice(None))
        elif isinstance(item, slice):
            span, step = _span(item, shape[len(ranges)])
            ranges.append(span)
            rest.append(step)
        else:
            ranges.append(_place(item.__index__(), shape[len(ranges)], len(ranges)))
            rest.append(0)
    whole = all(isinstance(item, slice) and item == slice(None) for item in rest)
    return Plan(ranges, tuple(end - begin for begin, end in ranges), () if whole else tuple(rest))


def _is_basic(item: Any) -> bool:
    if item is None or item is ... or isinstance(item, slice):
        return True
    # An array of one element counts as an index too, and True as 1: numpy takes both otherwise.
    is_number = hasattr(item, "__index__") and not isinstance(item, bool)
    return is_number and getattr(item, "ndim", 0) == 0


def _place(place: int, extent: int, dimension: int) -> tuple[int, int]:
    at = place + extent if place < 0 else place
    if not 0 <= at < extent:
        raise IndexError(f"index {place} is out of bounds for dimension {dimension} of {extent}")
    return at, at + 1


def _span(item: slice, extent: int) -> tuple[tuple[int, int], slice]:
    """The range that a slice lies in, and the slice of that range."""
    places = range(*item.indices(extent))
    if len(places) == 0:
        return (0, 0), slice(None)
    low, high = min(places[0], places[-1]), max(places[0], places[-1])
    if places.step == 1:
        return (low, high + 1), slice(None)
    return (low, high + 1), slice(None, None, places.step)


def rows(planned: Plan, shape: tuple[int, ...]) -> tuple[int, int] | None:
    """The rows of the outermost dimension, where nothing else is cut: they lie side by side."""
    if not shape or planned.ranges[1:] != [(0, extent) for extent in shape[1:]]:
        return None
    return planned.ranges[0]


def slices(ranges: list[tuple[int, int]]) -> tuple[slice, ...]:
    """The index that takes these ranges of an array."""
    return tuple(slice(begin, end) for begin, end in ranges)


def elements(planned: Plan) -> int:
    return math.prod(planned.shape)
