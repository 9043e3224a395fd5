"""The folder of a training run: its checkpoints, which of them stay, and always one to return to.

    from thalia_checkpoint import store

    store.create_run("run", {"phases": [{"name": "train", "retention": {"keep_last": 3}}]})
    with store.RunWriter("run") as run:
        with run.new_checkpoint(1000) as writer:
            writer.add("encoder/weight", weight)
        last = run.resume()    # the latest that is whole
        weight = last.file["encoder/weight"].numpy()

docs/format/store.md says what lies in the folder, and what a crash leaves of it. `thalia store` is the same
in the shell. torch's AsyncCheckpointer saves into such a folder.
"""

from __future__ import annotations

from ._facts import (
    CheckpointEntry,
    GateEntry,
    LoadAttempt,
    LoadedBytes,
    LoadedCheckpoint,
    PromoteResult,
    PruneResult,
    RestoreResult,
    RetentionDecision,
    RunSummary,
    StoredCheckpoint,
    StoreFinding,
    StoreReport,
)
from ._phases import (
    MigratedRecord,
    ModelFit,
    TransitionPlan,
    TransitionResult,
    TransitionStep,
    check_strictly,
    compare_with_model,
    hydra_config,
    hydra_transitions,
    migrate_record,
)
from ._pool import Pool, PoolAddResult, PoolCache, PoolConfig, PoolDraw, PoolMember, PoolRating, PoolView, Rating
from ._run import Run, create_run, find_runs, is_run_id, run_id
from ._saves import CheckpointWriter, StoreHandle
from ._writer import RunWriter

__all__ = [
    "CheckpointEntry",
    "CheckpointWriter",
    "GateEntry",
    "LoadAttempt",
    "LoadedBytes",
    "LoadedCheckpoint",
    "MigratedRecord",
    "ModelFit",
    "Pool",
    "PoolAddResult",
    "PoolCache",
    "PoolConfig",
    "PoolDraw",
    "PoolMember",
    "PoolRating",
    "PoolView",
    "PromoteResult",
    "PruneResult",
    "Rating",
    "RestoreResult",
    "RetentionDecision",
    "Run",
    "RunSummary",
    "RunWriter",
    "StoreFinding",
    "StoreHandle",
    "StoreReport",
    "StoredCheckpoint",
    "TransitionPlan",
    "TransitionResult",
    "TransitionStep",
    "check_strictly",
    "compare_with_model",
    "create_run",
    "find_runs",
    "hydra_config",
    "hydra_transitions",
    "is_run_id",
    "migrate_record",
    "run_id",
]
