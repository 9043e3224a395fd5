"""The state that the peers save: arrays in private memory, as a trainer's are."""

import json
import struct
import time

PAGE = 4096


def read_state(path):
    """The tensors of a safetensors file as NumPy arrays; bf16 as its bits, u2."""
    import numpy

    types = {"F32": "f4", "BF16": "u2", "F16": "f2", "I64": "i8", "F64": "f8"}
    arrays = {}
    with open(path, "rb", buffering=0) as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        header.pop("__metadata__", None)
        for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
            array = numpy.empty(entry["shape"], types[entry["dtype"]])
            flat = memoryview(array.reshape(-1).view("u1"))
            file.seek(8 + length + entry["data_offsets"][0])
            done = 0
            while done < len(flat):
                done += file.readinto(flat[done:])
            arrays[name] = array
    return arrays


def as_torch(arrays):
    """The same memory as torch tensors; bits of bf16 become bf16."""
    import torch

    tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
    return {
        name: tensor.view(torch.bfloat16) if arrays[name].dtype == "u2" else tensor for name, tensor in tensors.items()
    }


def flat_bytes(array):
    """The bytes of a NumPy array or a torch tensor, without a copy."""
    import numpy

    if isinstance(array, numpy.ndarray):
        return array.reshape(-1).view("u1")
    import torch

    return array.detach().reshape(-1).view(torch.uint8).numpy()


def touch(arrays):
    """Reads one byte of each page; of small tensors that lie side by side in one, of the first."""
    passed = PAGE
    for array in arrays.values():
        if passed >= PAGE:
            flat_bytes(array)[::PAGE].sum()
            passed = 0
        passed += array.nbytes


def samples(arrays, count=8):
    """Copies of some of the tensors, to compare what is loaded with."""
    names = list(arrays)
    return {name: flat_bytes(arrays[name]).copy() for name in names[:: len(names) // count or 1]}


def erase(expected, arrays):
    """So that what is found there later was loaded."""
    for name in expected:
        flat_bytes(arrays[name])[:] = 0


def check_samples(expected, loaded):
    for name, wanted in expected.items():
        if bytes(flat_bytes(loaded[name])) != bytes(wanted):
            raise ValueError(f"{name} is not what was saved")


def seconds_of(step):
    start = time.perf_counter()
    step()
    return time.perf_counter() - start
