"""How large deltas of one training step are, beside what an ideal code of the steps would take.

A bf16 weight moves by a whole number of units in the last place. The bounds are the empirical
entropy of that number: of all weights together (one table), and of those whose base has one exponent
(a table for each exponent), for the chance that a rounded weight moves depends on its magnitude. They
count no table and nothing of a file; numbers from 8 on count as one symbol and 10 bits more.
"""

import pathlib
import subprocess
import tempfile

MOST = 8
ESCAPE_BITS = 10

COLUMNS = (
    "learning rate",
    "changed",
    "`thalia delta`",
    "slime: exclusive or, zstd -1",
    "bound, one table",
    "bound, a table for each exponent",
    "delta by the bound",
    "slime by the delta",
)


def run(*command):
    subprocess.run([str(part) for part in command], check=True, stdout=subprocess.DEVNULL)


def checkpoint(folder, rate, number):
    return folder / f"bf16-{rate:g}-{number}.safetensors"


def bits_of(path):
    """The weights of a file in the order of their names, as u16."""
    import safetensors.torch
    import torch

    tensors = safetensors.torch.load_file(path)
    return torch.cat([tensors[name].flatten().view(torch.uint16) for name in sorted(tensors)]).numpy()


def in_order(bits):
    """Integers in the order of the values."""
    import numpy

    wide = bits.astype(numpy.int32)
    return numpy.where(wide & 0x8000, 0xFFFF - wide, wide | 0x8000)


def entropy(steps, context):
    """Bits of all steps, with a table for each context."""
    import numpy

    symbols = numpy.clip(steps, -MOST, MOST) + MOST
    counts = numpy.zeros((int(context.max()) + 1, 2 * MOST + 1))
    numpy.add.at(counts, (context, symbols), 1)
    totals = counts.sum(axis=1, keepdims=True)
    with numpy.errstate(divide="ignore", invalid="ignore"):
        each = numpy.where(counts > 0, counts * numpy.log2(totals / counts), 0)
    return each.sum() + ESCAPE_BITS * (abs(steps) >= MOST).sum()


def bytes_under(path):
    return sum(file.stat().st_size for file in [path, *path.rglob("*")] if file.is_file())


def delta_bytes(program, before, after, folder):
    """Of a delta, and of what slime publishes: files and index."""
    files = [folder / f"{number}.thalia" for number in range(2)]
    for source, file in zip((before, after), files, strict=True):
        run(program, "convert", "--force", source, file)
    ours, slime = folder / "1.delta.thalia", folder / "weight_v000001"
    run(program, "delta", "--force", *files, ours)
    run(program, "delta", *files, slime, "--as", "slime")
    return bytes_under(ours), bytes_under(slime)


def row(program, folder, rate):
    before, after = (checkpoint(folder, rate, number) for number in range(2))
    base, now = bits_of(before), bits_of(after)
    steps = in_order(now) - in_order(base)
    exponents = (base >> 7) & 0xFF
    raw = base.nbytes
    with tempfile.TemporaryDirectory(prefix="thalia-steps-", dir=folder) as scratch:
        delta, slime = delta_bytes(program, before, after, pathlib.Path(scratch))
    one, each = (entropy(steps, context) / 8 for context in (0 * exponents, exponents))
    percent = [100 * size / raw for size in (delta, slime, one, each)]
    changed = 100 * (steps != 0).mean()
    sizes = " | ".join(f"{value:.3g}" for value in (changed, *percent))
    return f"| {rate:g} | {sizes} | {delta / each:.3f} | {slime / delta:.2f} |", base.size


def table(folder, rates, program):
    """Rows of Markdown: bytes in % of the raw bytes, and two ratios."""
    rows, sizes = zip(*(row(program, folder, rate) for rate in rates), strict=True)
    head = f"{sizes[0]:,} parameters in bf16, one step; sizes in % of the raw bytes\n"
    rule = "|".join("---" for _ in COLUMNS)
    return "\n".join([head, f"| {' | '.join(COLUMNS)} |", f"|{rule}|", *rows])
