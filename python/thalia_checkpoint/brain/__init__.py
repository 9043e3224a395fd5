"""Checkpoints of brains: the API of the source specification.

    from thalia_checkpoint.brain import BrainCheckpoint

    BrainCheckpoint.save(brain, "stage1.thalia", metadata={"stage": 1})
    BrainCheckpoint.save_delta(brain, "stage2.delta.thalia", base_checkpoint="stage1.thalia")
    BrainCheckpoint.load("stage2.delta.thalia", into=brain)

A brain is any object with get_full_state() and load_full_state(), or a dictionary of nested arrays
or torch tensors. Files are .thalia files as docs/format/states.md has them, which other programs read and
grow; files of the original program are read. No pickle is read or written, and no class is imported
that a file names.
"""

from __future__ import annotations

from ._checkpoint import BrainCheckpoint, BrainSaveHandle, Validation
from ._compress import compress_checkpoint
from ._curriculum import CurriculumTrainer, StageConfig
from ._facts import RegionFacts
from ._policy import PRECISION_POLICIES, PrecisionPolicy
from ._state import BrainRegion, BrainState, LazyRegion

__all__ = [
    "PRECISION_POLICIES",
    "BrainCheckpoint",
    "BrainRegion",
    "BrainSaveHandle",
    "BrainState",
    "CurriculumTrainer",
    "LazyRegion",
    "PrecisionPolicy",
    "RegionFacts",
    "StageConfig",
    "Validation",
    "compress_checkpoint",
]
