#!/usr/bin/env python3
"""The package safetensors as publish_latency has it beside Thalia: a trainer that saves, a server that loads.

publish_peer.py train FILE MEMORY DTYPE TENSOR_BYTES
publish_peer.py serve FILE

The trainer saves what is in MEMORY, which changes, for each byte of its standard input: durably, and
renamed. The server looks for another file each millisecond and loads it. Both write the time at which
they are ready, and at which they were done, of the clock that the caller has too, with what loading took.
"""

import mmap
import os
import pathlib
import struct
import sys
import time

import numpy as np
from safetensors.numpy import load_file, save_file


def tell(made=0.0):
    os.write(1, struct.pack("=dd", time.monotonic(), made))


def tensors_in(memory, dtype, tensor_bytes):
    """{name: array} over the memory as it is."""
    # numpy has no bf16: an element is as large.
    element = np.dtype({"bf16": np.uint16, "f32": np.float32}[dtype])
    with open(memory, "rb") as file:
        elements = np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), element)
    count = tensor_bytes // element.itemsize
    return {f"w{at}": elements[at : at + count] for at in range(0, elements.size, count)}


def sync(path, flags):
    descriptor = os.open(path, flags | os.O_CLOEXEC)
    os.fsync(descriptor)
    os.close(descriptor)


def train(file, memory, dtype, tensor_bytes):
    tensors = tensors_in(memory, dtype, int(tensor_bytes))
    aside = f"{file}.new"
    tell()
    while os.read(0, 1):
        save_file(tensors, aside)
        sync(aside, os.O_RDONLY)
        os.rename(aside, file)
        sync(pathlib.Path(file).parent, os.O_RDONLY | os.O_DIRECTORY)
        tell()


def serve(file):
    held = None
    tell()
    while True:
        try:
            found = os.stat(file).st_ino
        except FileNotFoundError:
            found = held
        if found != held:
            begin = time.monotonic()
            tensors = load_file(file)
            tell(time.monotonic() - begin)
            held = found
            del tensors
        time.sleep(0.001)


if __name__ == "__main__":
    {"train": train, "serve": serve}[sys.argv[1]](*sys.argv[2:])
