"""Several brains in one file, each under a prefix. docs/format/states.md, "Ensembles"."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path as FilePath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, cast

from .. import _core
from .._keywords import suggests
from .._leaves import is_text
from .._operations.convert import ConvertResult, merge, migrate
from .._support import texts
from .._types import Path
from ..errors import UsageError, make_error
from . import _metadata
from ._arrays import Framework
from ._checkpoint import BrainCheckpoint
from ._compress import compress_checkpoint
from ._in_memory import is_path
from ._load import MAX_BYTES, Loader, OpenBrain, warn_of
from ._options import WrapOptions
from ._policy import PrecisionPolicy
from ._save import codec_of
from ._state import BrainState

if TYPE_CHECKING:
    from typing import Unpack

    from .._files.writer import PlainOptions
    from .._types import ReadOptions


@suggests
def save_ensemble(
    brains: Mapping[str, Any],
    path: Path,
    metadata: Mapping[str, Any] | None = None,
    compression: str | bool | None = None,
    compression_level: int | None = None,
    precision_policy: str | PrecisionPolicy | None = None,
    include_homeostatic: bool = True,
    *,
    sparse: bool = True,
    max_bytes: int = MAX_BYTES,
    **options: Unpack[PlainOptions],
) -> ConvertResult:
    """Saves several brains in one file: region R of the brain with the prefix P is region PR of the file.

    brains: by the prefix of each, such as "left/": dictionaries, objects with get_full_state(), or paths of
        checkpoints. merge() copies these, and what it copies of the others, which are in files next to `path`
        meanwhile. No prefix is empty, or the beginning of another.
    metadata: of the file; each brain keeps its own.
    precision_policy, include_homeostatic: with them, a checkpoint is read whole.
    max_bytes: of each checkpoint that is read whole.
    The other arguments are those of BrainCheckpoint.save().

    Raises as that, and as merge(); UsageError for prefixes that cannot be, or where the file would replace one
    that is read.
    """
    if not isinstance(brains, Mapping) or not brains:
        raise _metadata.bad_argument("brains", brains, "brains by their prefixes")
    for prefix in brains:
        if not is_text(prefix):
            raise _metadata.bad_argument("prefix", prefix, "a text")
    folder = FilePath(path).parent
    folder.mkdir(parents=True, exist_ok=True)
    is_changed = precision_policy is not None or not include_homeostatic
    frames = _core.frames_of_name(path)
    with TemporaryDirectory(prefix=f".{FilePath(path).name[:100]}.", dir=folder) as temporary:
        files: list[Path] = []
        for number, brain in enumerate(brains.values()):
            if is_path(brain) and not is_changed and _core.detect_format(brain) != "thalia-0.1":
                files.append(brain)
                continue
            files.append(FilePath(temporary, f"{number}.thalia"))
            if is_path(brain) and not is_changed:
                migrate(brain, files[-1], to="1.0", durability="none")
                continue
            BrainCheckpoint.save(
                BrainCheckpoint.load(brain, max_bytes=max_bytes) if is_path(brain) else brain,
                files[-1],
                precision_policy=precision_policy,
                include_homeostatic=include_homeostatic,
                sparse=sparse,
                durability="none",
            )
        _check_output(path, files)
        save: dict[str, Any] = {"replace": True, **options}
        given = _metadata.given(metadata, None)
        if frames is None:
            save.update(compression=codec_of(path, compression), compression_level=compression_level)
            return merge(files, path, prefixes=brains, metadata=given, **save)
        whole = FilePath(temporary, "all.thalia")
        plain: dict[str, Any] = {**save, "durability": "none"}
        result = merge(files, whole, prefixes=brains, metadata=given, **plain)
        wrap: dict[str, Any] = {key: save[key] for key in WrapOptions.__annotations__ if key in save}
        compress_checkpoint(whole, path, cast(Any, codec_of(path, compression) or frames), compression_level, **wrap)
        return result


@suggests
def load_ensemble(
    path: Path,
    prefixes: Iterable[str] | None = None,
    device: Any = None,
    lazy: bool = False,
    *,
    framework: Framework | None = None,
    classes: Iterable[type] = (),
    max_bytes: int = MAX_BYTES,
    search: Iterable[Path] = (),
    **options: Unpack[ReadOptions],
) -> dict[str, BrainState]:
    """The brains of a file that save_ensemble() or merge(prefixes=…) wrote, by prefix; each is as its own file
    would give it.

    prefixes: of those that are wanted. With `lazy`, regions are read on first access.
    max_bytes: of the file, and of each brain.
    The other arguments are those of BrainCheckpoint.load().

    Raises as BrainCheckpoint.load(); NotFoundError for a prefix that is not there; UsageError for a file that
    is no ensemble.
    """
    opened = OpenBrain(path, lazy=True, max_bytes=max_bytes, search=search, **options)
    warn_of(opened)
    known = opened.core.prefixes
    if not known:
        raise make_error(
            UsageError,
            f"{opened.path}: no ensemble; BrainCheckpoint.load() loads the one brain that it has",
            "wrong_state",
            path=opened.path,
        )
    found: dict[str, BrainState] = {}
    for prefix in known if prefixes is None else texts(prefixes):
        with opened.limit_named():
            part = opened.core.brain(prefix)
        brain = OpenBrain(path, max_bytes=max_bytes, opened=part)
        loader = Loader(brain, brain.dialect(framework, device, classes), max_bytes)
        found[prefix] = loader.state(set() if lazy else None)
    return found


def _check_output(path: Path, files: Iterable[Path]) -> None:
    for file in files:
        if os.path.exists(path) and os.path.exists(file) and os.path.samefile(file, path):
            text = f"{os.fspath(path)}: the output is a file that is read"
            raise make_error(UsageError, text, "bad_argument", path=os.fspath(path), field="path")
