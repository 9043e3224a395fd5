"""The predefined frequencies of step_delta: docs/format/deltas.md, "step_delta".

A step is Laplace distributed with a scale of 2^((row - 32) / 2) units in the last place, and is rounded at a
uniform phase. `step_rows.py document` and `step_rows.py code` print the table as the page and the codec have it.
"""

import sys
from decimal import ROUND_HALF_UP, Decimal, getcontext

ROWS = 48
TOTAL = 1 << 15
# First and last distance of g1, g2, g3, g4, g8, g16 and g32.
RANGES = ((1, 1), (2, 2), (3, 3), (4, 7), (8, 15), (16, 31), (32, 63))


def row(number):
    """g1, g2, g3, g4, g8, g16, g32, g_escape."""
    getcontext().prec = 60
    scale = Decimal(2) ** (Decimal(number - 32) / 2)
    q = (-1 / scale).exp()
    parts = [scale / 2 * (1 - q) * (q ** (first - 1) - q**last) for first, last in RANGES]
    parts.append(scale * (1 - q) * q**63)
    return [max(1, int((part * TOTAL).to_integral_value(ROUND_HALF_UP))) for part in parts]


def rows():
    return [row(number) for number in range(ROWS)]


def zero(gs):
    """The frequency of symbol 0."""
    return TOTAL - 2 * sum(gs[:7]) - gs[7]


def document_lines():
    return [f"| {number} | {zero(gs)} | {' | '.join(map(str, gs))} |" for number, gs in enumerate(rows())]


def code_lines():
    return [f"    {{{{{', '.join(map(str, gs))}}}}}," for gs in rows()]


if __name__ == "__main__":
    print("\n".join(code_lines() if sys.argv[1:] == ["code"] else document_lines()))
