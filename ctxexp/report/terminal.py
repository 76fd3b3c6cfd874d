"""Tables on a terminal, no wider than it is: a run's curves by layer, runs side by side, the tables of plugins."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from types import MappingProxyType

from ctxexp.report.findings import MARKED
from ctxexp.report.findings.claims import opposite_steps
from ctxexp.report.side_by_side import AT, ComparisonCell, number, side_by_side
from ctxexp.report.wording import SHARE_OF_ROOM, LabelledResults, mix_mark
from ctxexp.results import Results
from ctxexp.results.curves import keys_beside, main_keys
from ctxexp.results.values import LAYER, Key

BESIDE = ("raw", "chance")  # what stands beside a value at the last layer and the highest
GAP = 2  # spaces between columns
MIN_COLUMN = 20  # characters that a cell is not broken below, however narrow the terminal


def stacked_table(
    stub: Sequence[str],
    columns: Sequence[Sequence[str]],
    width: int,
    *,
    head: int,
    titles: Mapping[int, str] = MappingProxyType({}),
) -> str:
    """Columns of text beside each other; those that the width doesn't take stand below, after the stub again.

    Args:
        stub: The first column, (rows,).
        columns: The others, (rows,) each; a cell may have several lines.
        width: Characters of a line; a column alone may be wider.
        head: Rows above the line that divides them from the others.
        titles: Lines that stand above a row, by its number.
    """
    first = max(map(len, stub))
    blocks: list[list[Sequence[str]]] = []
    left = 0
    for column in columns:
        needed = GAP + _column_width(column)
        if not blocks or needed > left:
            blocks.append([stub])
            left = width - first
        blocks[-1].append(column)
        left -= needed
    return "\n\n".join("\n".join(_lines(block, head, titles)) for block in blocks)


def _lines(columns: Sequence[Sequence[str]], head: int, titles: Mapping[int, str]) -> Iterator[str]:
    widths = [_column_width(column) for column in columns]
    for i, row in enumerate(zip(*columns, strict=True)):
        if i == head:
            yield "-" * (sum(widths) + GAP * (len(widths) - 1))
        if i in titles:
            yield titles[i]
        for parts in zip_longest(*(cell.split("\n") for cell in row), fillvalue=""):
            yield (" " * GAP).join(part.ljust(n) for part, n in zip(parts, widths, strict=True)).rstrip()


def _column_width(column: Sequence[str]) -> int:
    return max(len(line) for cell in column for line in cell.split("\n"))


def _align_cells(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of cells as one column, the cells right-aligned under each other; empty ones take no room."""
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    return [" ".join(cell.rjust(n) for cell, n in zip(row, widths, strict=True) if n) for row in rows]


def curve_table(results: Results, width: int) -> str:
    """A run's main curves: a line a layer, in which each value has its 95% interval, the raw value and the level of
    chance beside it, and the adjusted one where the width takes it. Mixes of layers stand below them, then what the
    share of the room is and what a `*` marks. Empty where there is no curve."""
    layers, keys = list(results.info.model.layers or range(results.n_layers)), main_keys(results)
    mixes = list(results.info.pooling.mixes)
    if not keys:
        return ""
    narrow, wide = (
        stacked_table(
            ["", "layer", *map(str, layers), *mixes],
            [_curve_column(results, key, layers, mixes, names) for key in keys],
            width,
            head=2,
        )
        for names in (("raw", "chance"), ("raw", "chance", "adjusted"))
    )
    return _with_notes(wide if max(map(len, wide.splitlines())) <= width else narrow, width)


def _with_notes(table: str, width: int) -> str:
    """The table with what its words and signs mean below it."""
    notes = [SHARE_OF_ROOM] * ("share_of_room" in table) + [MARKED] * ("*" in table)
    return "\n".join(
        [table, *(line for note in notes for line in textwrap.wrap(note, min(width, 100), subsequent_indent="  "))]
    )


def _curve_column(
    results: Results, key: Key, layers: Sequence[int], mixes: Sequence[str], names: Sequence[str]
) -> list[str]:
    beside = {name: other for name, other in keys_beside(results, key).items() if name in names}
    places = [*((LAYER, layer) for layer in layers), *((mix, 0) for mix in mixes)]
    rows = [
        [*_estimates_at(results, key, *at), *(_estimates_at(results, other, *at)[0] for other in beside.values())]
        for at in places
    ]
    finite = [abs(value) for row in rows for value in row if math.isfinite(value)]
    digits = 2 if max(finite, default=0) >= 10 else 3
    marked = opposite_steps(results, key)

    def text(value: float) -> str:
        return f"{value:,.{digits}f}" if math.isfinite(value) else ""

    stars = [("*" if at in marked else " ") if place == LAYER and marked else "" for place, at in places]
    cells = [
        ((text(v) or "nan") + star, f"[{text(low)}, {text(high)}]" if text(low) else "", *map(text, others))
        for (v, low, high, *others), star in zip(rows, stars, strict=True)
    ]
    heads = (key.name, "95% interval" if any(cell[1] for cell in cells) else "", *beside)
    mark = mix_mark(results, key.measure)
    return [key.curve_name + (f" ({mark})" if mark else ""), *_align_cells([heads, *cells])]


def _estimates_at(results: Results, key: Key, place: str, at: int) -> tuple[float, float, float]:
    """Value, low and high end at a layer or mix; NaN where there is none."""
    estimates = results.by_key.get(key._replace(place=place))
    value, low, high = (math.nan,) * 3 if estimates is None else (float(part[at]) for part in estimates)
    return value, low, high


def comparison_table(runs: Sequence[LabelledResults], width: int) -> str:
    """Runs side by side, a line a run for each measure: its value at the last layer, and its highest one, with their
    intervals, the raw values and the levels of chance there."""
    columns: dict[str, list[tuple[str, ...]]] = {
        at: [(at.removesuffix(" layer"), "interval", *BESIDE)] for at in AT[:2]
    }
    stub, above = [""], {}  # labels, and the lines above their rows
    for row in side_by_side(runs):
        above[len(stub)] = [f"{row.title}, {row.curve.rpartition('/')[2]}"]
        for label, cells in zip(row.labels, row.cells, strict=True):
            if cells:
                stub.append(f"  {label}")
                for at, rows in columns.items():
                    rows.append(_comparison_cells(cells[at]) if at in cells else ("",) * (2 + len(BESIDE)))
    texts = [_align_cells(rows) for rows in columns.values()]
    room = width - GAP - max(len(line) for text in texts for line in text)
    for i, label in enumerate(stub):
        if len(label) > room:  # it has a line of its own
            above.setdefault(i, []).append(label)
            stub[i] = ""
    titles = {i: "\n".join(lines) for i, lines in above.items()}
    return _with_notes(stacked_table(stub, texts, width, head=1, titles=titles), width)


def _comparison_cells(cell: ComparisonCell) -> tuple[str, ...]:
    value, _, rest = cell.text.partition(" ")
    return value, rest, *(number(cell.beside[name]) if name in cell.beside else "" for name in BESIDE)


def fitted_markdown(text: str, width: int) -> str:
    """A table in Markdown as it stands, or, where it is wider, its columns in blocks below each other; a cell that is
    too long for a line beside the first column is broken into several."""
    lines = text.splitlines()
    if max(map(len, lines), default=0) <= width:
        return text
    rows = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines if line.startswith("|")]
    notes = [
        "\n".join(textwrap.wrap(line, width, subsequent_indent="  " if line.startswith("- ") else ""))
        for line in lines
        if not line.startswith("|")
    ]
    at = next((i for i, line in enumerate(lines) if line.startswith("|")), 0)
    if not rows or len({len(row) for row in rows}) > 1:
        return "\n".join(notes)
    stub, *columns = zip(*(row for i, row in enumerate(rows) if i != 1), strict=True)
    room = max(width - max(map(len, stub)) - GAP, MIN_COLUMN)
    columns = [tuple("\n".join(textwrap.wrap(cell, room)) for cell in column) for column in columns]
    return "\n".join([*notes[:at], stacked_table(stub, columns, width, head=1), *notes[at:]])
