"""What checkers of types see of calls that need numpy alone.

A line that ends in "# wrong" is an error, and no other is.
"""

from typing import assert_type

import numpy as np
import thalia_checkpoint as thalia
from thalia_checkpoint import brain, numpy, store

WEIGHT = np.ones(3, np.float32)


def opening() -> None:
    assert_type(thalia.open("f.thalia"), thalia.File | thalia.AnyFile)
    assert_type(thalia.open("f", format=None), thalia.File | thalia.AnyFile)
    assert_type(thalia.open("f", format="safetensors", access="copied"), thalia.AnyFile)
    with thalia.open("f.thalia", format="thalia") as file:
        assert_type(file, thalia.File)
        assert_type(file.region("encoder"), thalia.Region)
        assert_type(file.region("encoder")["weight"], thalia.Tensor)
        assert_type(file.training_steps, int)  # wrong
    with thalia.open("f.gguf", format="gguf", dequantize=True) as other:
        assert_type(other["weight"], thalia.Tensor)
        assert_type(other.training_steps, int | None)
    thalia.open("f", format="safetensor")  # wrong
    thalia.open("f", acces="copied")  # wrong
    thalia.open("f", format="gguf", verification="never")  # wrong


def saving() -> None:
    thalia.Writer("f", compression="zstd", compression_level=3, progress=True)
    thalia.Writer("f", compresion="zstd")  # wrong
    thalia.Writer("f", durability="often")  # wrong
    numpy.save_file({"w": WEIGHT}, "f", replace=False)
    numpy.save_file({"w": WEIGHT}, "f", relpace=False)  # wrong
    thalia.convert("f", "g", durability="none")
    thalia.convert("f", "g", durabilty="none")  # wrong
    thalia.serialize_file({}, "f.safetensors", durability="data")
    thalia.serialize_file({}, "f.safetensors", compression="zstd")  # wrong
    with store.RunWriter("run") as run:
        run.new_checkpoint(1, compression="lz4")
        run.new_checkpoint(1, compression="gzip")  # wrong


def objects() -> None:
    thalia.save({"w": WEIGHT}, "f", durability="none")
    thalia.save({"w": WEIGHT}, "f", durabilty="none")  # wrong
    assert_type(thalia.save(WEIGHT, compression="zstd"), bytes)
    thalia.save(WEIGHT, compresion="zstd")  # wrong
    with store.RunWriter("run") as run:
        run.save_object(1, WEIGHT, compression="lz4")
        run.save_object(1, WEIGHT, compresion="lz4")  # wrong
        run.save_brain(1, {}, compression="zstd", metadata={"a": 1}, sparse=False, replace=True)
        run.save_brain(1, {}, compresion="zstd")  # wrong
        run.save_brain_async(thalia.AsyncSaver(), 1, {}, threads=2)
        run.save_brain_async(thalia.AsyncSaver(), 1, {}, thread=2)  # wrong
    brain.save_ensemble({"left/": {}}, "f", replace=False, threads=1)
    brain.save_ensemble({"left/": {}}, "f", thread=1)  # wrong
    brain.load_ensemble("f", access="copied")
    brain.load_ensemble("f", acess="copied")  # wrong


def brains(own: object) -> None:
    brain.BrainCheckpoint.save(own, "f", compression="zstd", durability="none")
    brain.BrainCheckpoint.save(own, "f", durabilty="none")  # wrong
    brain.BrainCheckpoint.save_delta(own, "f", "g", thread=1)  # wrong
    assert_type(brain.BrainCheckpoint.load("f", access="copied"), brain.BrainState)
    brain.BrainCheckpoint.load("f", acess="copied")  # wrong
    brain.compress_checkpoint("f", "g", frame_bytes=4096)
    brain.compress_checkpoint("f", "g", frame_byte=4096)  # wrong
    trainer = brain.CurriculumTrainer(own, "folder", delta=True, threshold=0.1, precision_policy="fp16")
    brain.CurriculumTrainer(own, "folder", precision="fp16")  # wrong
    trainer.resume(framework="numpy")
    trainer.resume(into=own)  # wrong
