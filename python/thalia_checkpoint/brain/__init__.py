"""Checkpoints of brains: the API of the source specification.

    from thalia_checkpoint.brain import BrainCheckpoint, grow_output

    BrainCheckpoint.save(brain, "stage1.thalia", metadata={"stage": 1})
    BrainCheckpoint.save_delta(brain, "stage2.delta.thalia", base_checkpoint="stage1.thalia")
    BrainCheckpoint.load("stage2.delta.thalia", into=brain)

    grow_output(brain, "cortex", 32, seed=7)

A brain is any object with get_full_state() and load_full_state(), or a dictionary of nested arrays
or torch tensors. Files are .thalia files as docs/format/states.md has them, which other programs read and
grow; files of the original program are read. No pickle is read or written, and no class is imported
that a file names.
"""

from __future__ import annotations

from .._core import Migration
from ._checkpoint import BrainCheckpoint, BrainSaveHandle, Validation
from ._compress import compress_checkpoint
from ._curriculum import CurriculumTrainer, StageConfig
from ._ensemble import load_ensemble, save_ensemble
from ._facts import RegionFacts
from ._growth import (
    AppendResult,
    CapacityMetrics,
    GrowFileOptions,
    GrowFileResult,
    GrownTensor,
    GrowthOptions,
    GrowthResult,
    LoadIntoResult,
    PrunedTensor,
    PruningResult,
    auto_grow,
    auto_prune,
    capacity_metrics,
    check_growth_needs,
    get_capacity_metrics,
    grow_file,
    grow_file_source,
    grow_output,
    grow_source,
    load_into,
    prune_synapses,
    remove_neurons,
    undo_pruning,
)
from ._migrator import FormatMigrator
from ._policy import PRECISION_POLICIES, PrecisionPolicy
from ._state import BrainRegion, BrainState, LazyRegion

__all__ = [
    "PRECISION_POLICIES",
    "AppendResult",
    "BrainCheckpoint",
    "BrainRegion",
    "BrainSaveHandle",
    "BrainState",
    "CapacityMetrics",
    "CurriculumTrainer",
    "FormatMigrator",
    "GrowFileOptions",
    "GrowFileResult",
    "GrownTensor",
    "GrowthOptions",
    "GrowthResult",
    "LazyRegion",
    "LoadIntoResult",
    "Migration",
    "PrecisionPolicy",
    "PrunedTensor",
    "PruningResult",
    "RegionFacts",
    "StageConfig",
    "Validation",
    "auto_grow",
    "auto_prune",
    "capacity_metrics",
    "check_growth_needs",
    "compress_checkpoint",
    "get_capacity_metrics",
    "grow_file",
    "grow_file_source",
    "grow_output",
    "grow_source",
    "load_ensemble",
    "load_into",
    "prune_synapses",
    "remove_neurons",
    "save_ensemble",
    "undo_pruning",
]
