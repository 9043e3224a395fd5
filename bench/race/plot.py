"""The results as an SVG picture: a bar for each contestant of each race that has a rate."""

from xml.sax.saxutils import escape

WIDTH, NAME, BAR, ROW, HEAD = 860, 300, 440, 20, 34
COLOURS = {"ours": "#2f6f9f", "peer": "#b9b9b9", "floor": "#3c3c3c"}


def _text(x, y, words, anchor="start", weight="normal"):
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" font-weight="{weight}">{escape(words)}</text>'


def _rows(result):
    return [row for row in result["rows"] if "gib_per_second" in row]


def _panel(result, top):
    """One race; the bars are medians, the lines on them reach from the least to the greatest."""
    rows = _rows(result)
    most = max(row["gib_per_second"]["max"] for row in rows)
    shapes = [_text(8, top + 20, f"{result['name']}, GiB/s", weight="bold")]
    for i, row in enumerate(rows):
        y = top + HEAD + i * ROW
        rate = row["gib_per_second"]
        at = {key: NAME + value / most * BAR for key, value in rate.items()}
        middle = y + ROW / 2 - 2
        shapes += [
            _text(NAME - 8, y + 12, row["name"], "end"),
            f'<rect x="{NAME}" y="{y}" width="{at["median"] - NAME:.1f}" height="{ROW - 5}"'
            f' fill="{COLOURS[row["kind"]]}"/>',
            f'<path d="M{at["min"]:.1f} {middle}H{at["max"]:.1f}" stroke="#d9822b" stroke-width="2"/>',
            _text(at["max"] + 6, y + 12, f"{rate['median']:.2f}"),
        ]
    return shapes, HEAD + len(rows) * ROW + 8


def svg(results):
    shapes, top = [], 4
    for result in results:
        if _rows(result):
            panel, height = _panel(result, top)
            shapes += panel
            top += height
    style = 'font-family="sans-serif" font-size="12"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top}" {style}>\n'
        f'<rect width="{WIDTH}" height="{top}" fill="white"/>\n' + "\n".join(shapes) + "\n</svg>\n"
    )
