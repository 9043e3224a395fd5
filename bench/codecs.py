#!/usr/bin/env python3
"""Codecs for weights on one core: Thalia's beside ZipNN, OpenZL, zstd and lz4.

The same bytes go to all of them: normal weights, sigma 0.02, in bf16, f32 and f16, or the f32, bf16
and f16 tensors of a safetensors file. ZipNN and OpenZL run in this process, Thalia, zstd and lz4 in
codec_benchmark; a speed is also given as a part of memcpy's in the turn before or behind it.
bench/README.md states the method.
"""

import argparse
import json
import os
import pathlib
import re
import statistics
import struct
import subprocess
import sys
import tempfile
import time

from race import environment

# What a safetensors file calls a type, ZipNN does, and its bytes.
TYPES = {"BF16": ("bfloat16", 2), "F32": ("float32", 4), "F16": ("float16", 2)}


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    add = parser.add_argument
    add("--build", type=pathlib.Path, default=environment.ROOT / "build-bench", help="build folder")
    add("--data", type=pathlib.Path, help="safetensors file with the weights (normal ones)")
    add("--mib", type=int, default=32, help="size of the normal weights of each type (32)")
    add("--rounds", type=int, default=7)
    add("--smoke", action="store_true", help="tiny, one round, no peers: does it still run?")
    options = parser.parse_args()
    if options.smoke:
        options.mib, options.rounds = 1, 1
    return options


def normal_weights(mib):
    """{type: bytes}: mean 0, sigma 0.02, rounded to nearest even."""
    import numpy

    f32 = numpy.random.default_rng(20).normal(0, 0.02, mib << 18).astype("<f4")
    bits = f32.view("<u4")
    bf16 = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype("<u2")
    return {"BF16": bf16.tobytes(), "F32": f32.tobytes(), "F16": f32.astype("<f2").tobytes()}


def tensors_of(path):
    """{type: bytes} of the tensors of a safetensors file, those of a type one behind the other."""
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    header.pop("__metadata__", None)
    found = {}
    for tensor in sorted(header.values(), key=lambda each: each["data_offsets"]):
        begin, end = (8 + length + offset for offset in tensor["data_offsets"])
        if tensor["dtype"] in TYPES:
            found[tensor["dtype"]] = found.get(tensor["dtype"], b"") + data[begin:end]
    return found


def write_safetensors(path, dtype, data):
    shape = [len(data) // TYPES[dtype][1]]
    header = {"weights": {"dtype": dtype, "shape": shape, "data_offsets": [0, len(data)]}}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def zipnn(dtype):
    """(encode, decode, prepare): ZipNN changes the bytes that it is given, so each call gets a copy."""
    from zipnn import ZipNN

    codec = ZipNN(method="huffman", input_format="byte", bytearray_dtype=TYPES[dtype][0], threads=1)
    return codec.compress, codec.decompress, bytearray


def openzl(dtype):
    """Exponents through its entropy coder, the rest stored, as its documentation has it for floats."""
    import numpy
    from openzl import ext

    compressor = ext.Compressor()
    node = {
        "BF16": ext.nodes.BFloat16Deconstruct,
        "F32": ext.nodes.Float32Deconstruct,
        "F16": ext.nodes.Float16Deconstruct,
    }[dtype]()
    stored, coded = ext.graphs.Store()(compressor), ext.graphs.Entropy()(compressor)
    if dtype == "F16":  # 11 bits in two bytes
        packed = ext.graphs.Bitpack()(compressor)
        stored = ext.nodes.ConvertStructToNumLE()(compressor, packed)
    compressor.select_starting_graph(node(compressor, stored, coded))
    elements = {2: "<u2", 4: "<u4"}[TYPES[dtype][1]]

    def encode(array):
        context = ext.CCtx()
        context.ref_compressor(compressor)
        context.set_parameter(ext.CParam.FormatVersion, ext.MAX_FORMAT_VERSION)
        return context.compress([ext.Input(ext.Type.Numeric, array)])

    def decode(data):
        return ext.DCtx().decompress(data)[0].content.as_nparray()

    return encode, decode, lambda data: numpy.frombuffer(data, elements)


def measure(run, data, rounds):
    """Median GB/s by CPU time, and of memcpy's in the same round."""
    import numpy

    source = numpy.frombuffer(data, "u1")
    target = numpy.zeros_like(source)
    rates, parts = [], []
    for _ in range(rounds):
        start = time.process_time()
        numpy.copyto(target, source)
        copied = time.process_time() - start
        taken = run()
        rates.append(len(data) / taken / 1e9)
        parts.append(copied / taken)
    return statistics.median(rates), statistics.median(parts)


def peer_row(make, dtype, data, rounds):
    encode, decode, prepare = make(dtype)

    def timed(function, argument):
        start = time.process_time()
        function(argument)
        return time.process_time() - start

    stored = bytes(encode(prepare(data)))
    if bytes(decode(stored)) != data:
        raise ValueError("does not give back what it was given")
    encoding = measure(lambda: timed(encode, prepare(data)), data, rounds)
    decoding = measure(lambda: timed(decode, stored), data, rounds)
    return len(data) / len(stored), encoding, decoding


def own_rows(options, dtype, data):
    """{codec: (ratio, encode, decode)} from codec_benchmark: the fastest set of instructions, and the others."""
    with tempfile.TemporaryDirectory() as folder:
        path, out = pathlib.Path(folder) / "weights.safetensors", pathlib.Path(folder) / "out.json"
        write_safetensors(path, dtype, data)
        command = [options.build / "bench/codec_benchmark", "--data", path, "--json", out]
        command += ["--pairs", str(options.rounds), "--only", "beside memcpy"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        comparisons = json.loads(out.read_text(encoding="utf-8"))["comparisons"]
    rows = {}
    for comparison in comparisons:
        name, ratio = re.fullmatch(r"(.*) \(([\d.]+)\)", comparison["ours"]).groups()
        seconds = statistics.median(pair[0] for pair in comparison["cpu_pairs"])
        figures = (comparison["bytes"] / seconds / 1e9, comparison["cpu_median"])
        row = rows.setdefault(name, {"ratio": float(ratio)})
        row["encode" if ", encode, " in comparison["name"] else "decode"] = figures
    return {name: (row["ratio"], row["encode"], row["decode"]) for name, row in rows.items()}


def line(name, row):
    ratio, encode, decode = row
    cells = [f"{rate:.2f} GB/s, {part:.2f}" for rate, part in (encode, decode)]
    return f"| {name} | {ratio:.3f} | {cells[0]} | {cells[1]} |"


def main():
    options = parse()
    if not options.smoke:
        environment.enter()
    if options.data is None and options.smoke:
        chunks = {"F32": b"".join(struct.pack("<f", 0.001 * i) for i in range(1 << 16))}
    else:
        chunks = tensors_of(options.data) if options.data else normal_weights(options.mib)
    load = os.getloadavg()[0]
    print(f"load {load:.1f}, {options.rounds} rounds; speed on one core by CPU time, and as a part of memcpy's\n")
    for dtype, data in chunks.items():
        name = options.data.name if options.data else "normal weights, sigma 0.02"
        if options.smoke:
            name = "a slope"
        print(f"{name}, {dtype}, {len(data):,} bytes\n")
        print("| codec | ratio | encode | decode |\n|---|---|---|---|")
        for codec, row in own_rows(options, dtype, data).items():
            print(line(codec, row), flush=True)
        for peer, make in (("ZipNN", zipnn), ("OpenZL", openzl)) if not options.smoke else ():
            try:
                print(line(peer, peer_row(make, dtype, data, options.rounds)), flush=True)
            except Exception as error:  # the packages have exception classes of their own
                print(f"| {peer} | {type(error).__name__}: {error} | | |")
        print()


if __name__ == "__main__":
    sys.exit(main())
