"""Weights as models have them: layers of f16 matrices and f32 norms, many small tensors, blocks of GGUF."""

SEED = 20
ROW = 4096  # elements of a row of blocks
# Of a block: elements, bytes, and where the halves lie that scale it.
BLOCKS = {"Q8_0": (32, 34, (0,)), "Q4_K": (256, 144, (0, 2)), "Q6_K": (256, 210, (208,))}


def _normal(rng, shape, dtype):
    return (rng.standard_normal(shape, "f4") * 0.02).astype(dtype, copy=False)


def model(size):
    """A transformer of about `size` bytes: nine tensors a layer, matrices in f16, norms in f32."""
    import numpy

    rng = numpy.random.default_rng(SEED)
    width = 1280 if size >= 1 << 29 else 256
    square, wide, tall = (width, width), (4 * width, width), (width, 4 * width)
    layer = {"attn_norm": (width,), "ffn_norm": (width,)}
    layer |= {f"attn_{part}": square for part in ("q", "k", "v", "output")}
    layer |= {"ffn_gate": wide, "ffn_up": wide, "ffn_down": tall}
    arrays = {"token_embd.weight": _normal(rng, (256, width), "f2"), "output_norm.weight": _normal(rng, width, "f4")}
    for i in range(max(1, round(size / (2 * 16 * width * width)))):
        for part, shape in layer.items():
            arrays[f"blk.{i}.{part}.weight"] = _normal(rng, shape, "f4" if len(shape) == 1 else "f2")
    return arrays


def small(count):
    """Tensors of 64 bytes."""
    import numpy

    values = _normal(numpy.random.default_rng(SEED), (count, 16), "f4")
    return {f"blk.{i // 8}.w{i % 8}": values[i] for i in range(count)}


def blocks(type, size):
    """Tensors of random codes and small scales, `size` bytes once they are f32."""
    import numpy

    elements, block_bytes, scales = BLOCKS[type]
    rng = numpy.random.default_rng(SEED)
    rows = max(1, min(ROW, size // (4 * ROW)))
    arrays = {}
    for i in range(max(1, size // (4 * ROW * rows))):
        codes = rng.integers(0, 256, (rows * ROW // elements, block_bytes), "u1")
        for at in scales:
            codes[:, at : at + 2] = numpy.frombuffer(numpy.float16(0.002).tobytes(), "u1")
        arrays[f"blk.{i}.weight"] = codes.reshape(rows, -1)
    return arrays
