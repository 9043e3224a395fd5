"""DeepSpeed with {"checkpoint": {"use_mithril": true}} in its config: checkpoints are compressed .thalia files.

    from thalia_checkpoint.mithril.deepspeed import initialize

    model_engine, optimizer, _, scheduler = initialize(model=model, config="deepspeed_config.json")

"mithril_config", beside "use_mithril", may have compression_level, byte_grouping, "asynchronous": true to save while
the training goes on, and members of SaveOptions.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from typing import Any

import deepspeed
import hjson

from .._keywords import suggests
from ..deepspeed import ThaliaAsyncCheckpointEngine, ThaliaCheckpointEngine
from ..errors import UnsupportedError, UsageError, make_error

__all__ = ["configure", "initialize"]


def initialize(*args: Any, **kwargs: Any) -> tuple[Any, ...]:
    """deepspeed.initialize(), and configure() of the engine that it makes. In every rank.

    Raises as both.
    """
    made: tuple[Any, ...] = deepspeed.initialize(*args, **kwargs)
    configure(made[0])
    return made


def configure(model_engine: Any) -> bool:
    """Sets `checkpoint_engine` of an engine of DeepSpeed if its config asks for it; for who does not call initialize()
    himself, as transformers and Accelerate do. To be called in every rank, before the first checkpoint.

    What the engine was given as its config is read: a dictionary, or the path of a file, which is still there.

    Raises UsageError for "use_mithril" that is no true or false, "mithril_config" that is no object, and a value in
    it that cannot be; TypeError for a name that it has not; UnsupportedError for byte_grouping of false, and for an
    engine that does not tell its config.
    """
    checkpoint = _config_of(model_engine).get("checkpoint") or {}
    wanted = checkpoint.get("use_mithril", False)
    if not isinstance(wanted, bool):
        raise _wrong("use_mithril", wanted, "true or false")
    options = checkpoint.get("mithril_config", {})
    if not isinstance(options, dict):
        raise _wrong("mithril_config", options, "an object")
    if wanted:
        model_engine.checkpoint_engine = _engine(**options)
    return wanted


def _config_of(model_engine: Any) -> Mapping[str, Any]:
    """The config as the caller of deepspeed.initialize() gave it, read as DeepSpeed reads it."""
    given = getattr(model_engine, "config", None)
    read: Any = given
    try:
        if isinstance(given, str | os.PathLike) and os.path.exists(given):
            with open(given, encoding="utf-8") as file:
                read = hjson.load(file)
        elif isinstance(given, str):
            read = hjson.loads(base64.urlsafe_b64decode(given).decode())
    except (OSError, ValueError):
        pass
    if isinstance(read, Mapping):
        return read
    told = f"got {given!r}" if hasattr(model_engine, "config") else f"{type(model_engine).__name__} has none"
    raise make_error(
        UnsupportedError,
        f"model_engine.config: {told}, expected the config of deepspeed.initialize(), a dictionary or a file that is "
        "there; model_engine.checkpoint_engine = ThaliaCheckpointEngine(…) needs none",
        "unsupported_feature",
        field="config",
        value=str(given),
        expected="a dictionary, or the path of a file",
    )


@suggests
def _engine(
    *, compression_level: int | None = None, byte_grouping: bool = True, asynchronous: bool = False, **options: Any
) -> ThaliaCheckpointEngine:
    if byte_grouping is not True:
        raise make_error(
            UnsupportedError,
            f"checkpoint.mithril_config.byte_grouping: got {byte_grouping!r}, expected true: .thalia files group bytes",
            "unsupported_feature",
            field="checkpoint.mithril_config.byte_grouping",
            value=str(byte_grouping),
            expected="true",
        )
    if "compression" not in options:
        options["compression"] = "plane_entropy" if compression_level is None else "zstd"
    if compression_level is not None:
        options["compression_level"] = compression_level
    return (ThaliaAsyncCheckpointEngine if asynchronous else ThaliaCheckpointEngine)(**options)


def _wrong(name: str, value: object, expected: str) -> Exception:
    return make_error(
        UsageError,
        f"checkpoint.{name}: got {value!r}, expected {expected}",
        "bad_argument",
        field=f"checkpoint.{name}",
        value=repr(value),
        expected=expected,
    )
