"""Files of a distributed checkpoint that several ranks share.

Each rank of a group writes a part, and the rank that is done last joins the parts into one file.
So no rank waits for another, or hangs on one that died; and the parts are mapped, not gathered in
the memory of a rank.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from torch.distributed.checkpoint.metadata import MetadataIndex
from torch.distributed.checkpoint.planner import SavePlan, SavePlanner
from torch.distributed.checkpoint.storage import WriteResult

from .._distributed.metadata import RANKS_NAME, StoredFile, StoredValue, file_name, is_file_name, part_name
from .._files.file import File
from .._files.open import open_one
from .._files.writer import Writer
from .._support import io_errors, without_link
from ..errors import IoError, make_error
from ._write import Place, stored_file, write_items

#: Nobody keeps a part, so it is neither small nor safe from a power loss.
_PART_OPTIONS = {"compression": None, "compression_level": None, "sha256": None, "durability": "none", "progress": None}

#: The file and region where a region of a part is now.
Moves = dict[tuple[StoredFile, str], tuple[StoredFile, str]]


def announce(folder: str, ranks: int) -> None:
    """Tells the ranks how many they are: dcp tells each its own number alone."""
    with io_errors(), open(os.path.join(folder, RANKS_NAME), "x") as out:
        out.write(str(ranks))


def write_data(
    folder: str, rank: int, ranks_per_file: int, plan: SavePlan, planner: SavePlanner, options: Mapping[str, Any]
) -> list[WriteResult]:
    """Writes a rank's items to its file, or to a part of the file that it shares.

    For joined() to see, the results of the rank that joins have Moves after them. Raises as
    write_items(); FormatError, IntegrityError for a part that is damaged.
    """
    group = _group(folder, rank, ranks_per_file)
    if len(group) == 1:
        return write_items(os.path.join(folder, file_name(rank)), plan, planner, options)
    part = os.path.join(folder, part_name(rank))
    results = write_items(part, plan, planner, {**options, **_PART_OPTIONS})
    with io_errors(), open(part, "ab", opener=without_link):
        pass  # makes an empty one for a rank that has nothing to write
    moves = _join(folder, group, options)
    return [*results, WriteResult(MetadataIndex(""), 0, moves)] if moves else results


def joined(results: Iterable[WriteResult]) -> list[WriteResult]:
    """What all ranks wrote, at its present place. Raises IoError for parts that nobody joined."""
    moves: Moves = {}
    places = []
    for result in results:
        if isinstance(result.storage_data, dict):
            moves |= result.storage_data
        elif isinstance(result.storage_data, Place | StoredValue):
            places.append(result)
    return [replace(result, storage_data=_moved(result.storage_data, moves)) for result in places]


def _moved(place: Place | StoredValue, moves: Moves) -> Place | StoredValue:
    if place.file is None or is_file_name(place.file.name):
        return place
    if (place.file, place.region) not in moves:
        raise make_error(
            IoError,
            f"{place.file.name}: not in the file of its ranks: another process wrote it, or the ranks do not see each "
            "other's files",
            "io",
            path=place.file.name,
        )
    file, region = moves[place.file, place.region]
    return replace(place, file=file, region=region)


def _group(folder: str, rank: int, ranks_per_file: int) -> range:
    """The ranks that share a rank's file."""
    if ranks_per_file == 1:
        return range(rank, rank + 1)
    with io_errors(), open(os.path.join(folder, RANKS_NAME)) as file:
        ranks = int(file.read())
    first = rank - rank % ranks_per_file
    return range(first, min(first + ranks_per_file, ranks))


def _join(folder: str, group: range, options: Mapping[str, Any]) -> Moves:
    """Joins the parts of a group; does nothing before all are there, or while another rank does it."""
    parts = [os.path.join(folder, part_name(rank)) for rank in group]
    if not all(map(os.path.exists, parts)):
        return {}
    path = os.path.join(folder, file_name(group[0]))
    # Several ranks may see all parts. The one that makes the file fills it.
    with io_errors():
        try:
            open(path, "xb").close()
        except FileExistsError:
            return {}
    # The parts stay to the end: their ranks may not have looked at them yet.
    return _write(path, [part for part in parts if os.path.getsize(part)], options)


def _write(path: str, parts: list[str], options: Mapping[str, Any]) -> Moves:
    regions: dict[tuple[StoredFile, str], str] = {}
    names: set[tuple[str, str]] = set()
    with Writer(path, **options) as writer:
        for part in parts:
            stored, file = stored_file(part), open_one(part)
            assert isinstance(file, File)
            for own, tensors in file.items():
                region, n = own, 1
                while any((region, name) in names for name in tensors):
                    n += 1
                    region = f"{own}#{n}"
                regions[stored, own] = region
                names.update((region, name) for name in tensors)
                for name, tensor in tensors.items():
                    writer.add_bytes(name, tensor.dtype, tensor.shape, tensor.raw(), region=region, role=tensor.role)
        if not parts:
            writer.abandon()
            return {}
    target = stored_file(path)
    return {origin: (target, region) for origin, region in regions.items()}
