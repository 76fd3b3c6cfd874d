"""Tables and answers as text, no wider than the terminal; tables and figures that plugins add to a sweep; and
`Document`, the one form of what a verb found, for the terminal, for files and for scripts.

A document's JSON, one line of stdout with `json=true`, is described by `document.schema.json` beside this file.
"""

from __future__ import annotations

import json
import math
import re
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ctxexp.errors import DiskError
from ctxexp.files import write_csv, write_file
from ctxexp.plugins import REPORT
from ctxexp.plugins.registry import Registry
from ctxexp.progress import show, terminal_width
from ctxexp.report.changes import variant_range
from ctxexp.report.findings import comparison_finding
from ctxexp.report.style import save_figure
from ctxexp.report.wording import LabelledResults
from ctxexp.results import Results
from ctxexp.results.results import keys_beside
from ctxexp.results.values import LAYER, Key

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

WIDEST = 100  # characters of a line of what a command ends with, however wide the terminal
SPOKEN = 8  # runs of which each has a sentence
GAP = 2  # spaces between columns
MIN_COLUMN = 20  # characters that a cell is not broken below, however narrow the terminal
FILES = "table_*.md"
_Row = tuple[str, Results, str, int]  # its name, and where its values are: of which run, place and layer
_LATEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\u2212": "$-$"}


def _table(columns: Sequence[Sequence[str]]) -> str:
    """Columns of text (rows,) beside each other, a line under the first row; a cell may have several lines."""
    widths, lines = [_column_width(column) for column in columns], list[str]()
    for i, row in enumerate(zip(*columns, strict=True)):
        cells = [cell.split("\n") for cell in row]
        if i == 0:  # heads end on the line above the first row
            cells = [[""] * (max(map(len, cells)) - len(cell)) + cell for cell in cells]
        if i == 1:
            lines.append("-" * (sum(widths) + GAP * (len(widths) - 1)))
        for parts in zip_longest(*cells, fillvalue=""):
            lines.append((" " * GAP).join(part.ljust(n) for part, n in zip(parts, widths, strict=True)).rstrip())
    return "\n".join(lines)


def _column_width(column: Sequence[str]) -> int:
    return max(len(line) for cell in column for line in cell.split("\n"))


def _align_cells(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of cells as one column, the cells right-aligned under each other; empty ones take no room."""
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    return [" ".join(cell.rjust(n) for cell, n in zip(row, widths, strict=True) if n) for row in rows]


def _estimates_at(results: Results, key: Key, place: str, at: int) -> tuple[float, float, float]:
    """Value, low and high end at a layer or mix; NaN where there is none."""
    estimates = results.by_key.get(key._replace(place=place))
    value, low, high = (math.nan,) * 3 if estimates is None else (float(part[at]) for part in estimates)
    return value, low, high


def answer(runs: Sequence[LabelledResults], width: int) -> str:
    """What a command ends with: a sentence a run and one that compares them, and a table of the curves by layer.

    Of one run the table has a line a layer and mix of layers, of several a line a run, at its last layer: the leading
    measure with its interval and the range of its variants, then the others, with chance beside, that the width takes.
    """
    one, width = len(runs) == 1, min(width, WIDEST)
    said = [text for label, results in runs[:SPOKEN] for text in results.findings(label)[:1]]
    said += runs[0][1].doubts if one else [comparison_finding(runs, named=False)]
    lines = [line for text in said for line in textwrap.wrap(text, width)]
    keys, rows = _main_keys(runs), _rows_of(runs)
    if not keys:
        return "\n".join(lines)
    columns = [["layer" if one else "", *(textwrap.shorten(row[0], width // 3, placeholder=" ...") for row in rows)]]
    room = width - _column_width(columns[0])
    for i, key in enumerate(keys):
        column = _answer_column(key, rows, is_leading=i == 0)
        room -= GAP + _column_width(column)
        columns += [column] * (i == 0 or room >= 0)
    return "\n".join([*lines, "", _table(columns)])


def write_main_table(runs: Sequence[LabelledResults], folder: Path) -> list[Path]:
    """Write the table that a command ends with, for print; the paths, none where no measure has a curve."""
    table = main_table(runs)
    return table.save(folder, "table") if table else []


def main_table(runs: Sequence[LabelledResults]) -> Table | None:
    """The table that a command ends with, without chance and variants: as it is read, the leading measure with its
    interval; in numbers, each value with its ends. None where no measure has a curve."""
    import pandas as pd

    keys, rows = _main_keys(runs), _rows_of(runs)
    if not keys:
        return None
    one = len(runs) == 1
    numbers: dict[str, list[object]] = {
        "layer" if one else "run": [int(row[0]) if one and row[0].isdigit() else row[0] for row in rows]
    }
    shown = [[row[0]] for row in rows]
    for key in keys:
        cells = [_estimates_at(results, key, place, at) for _, results, place, at in rows]
        for name, part in zip((str(key), f"{key}_low", f"{key}_high"), zip(*cells, strict=True), strict=True):
            numbers[name] = list(part)
        for row, (value, low, high) in zip(shown, cells, strict=True):
            ends = f" [{low:z.3f}, {high:z.3f}]" if key == keys[0] and math.isfinite(low) else ""
            row.append(f"{value:z.3f}{ends}" if math.isfinite(value) else "")
    at = f"{runs[0][0]}, layer by layer" if one else "Last layers"
    heads = [next(iter(numbers)), *map(_spoken_name, keys)]
    return Table(at, pd.DataFrame(numbers), heads, shown)


def _main_keys(runs: Sequence[LabelledResults]) -> list[Key]:
    return list(dict.fromkeys(key for _, results in runs for key in results.main_keys))


def _rows_of(runs: Sequence[LabelledResults]) -> list[_Row]:
    """A row a layer and mix of one run, a row a run at its last layer of several."""
    rows = list[_Row]()
    for label, results in runs:
        layers = list(results.info.model.layers or range(results.n_layers))
        if len(runs) == 1:
            rows += [(str(layer), results, LAYER, layer) for layer in layers]
            rows += [(mix, results, mix, 0) for mix in results.info.pooling.mixes]
        else:
            rows += [(label, results, LAYER, layer) for layer in layers[-1:]]
    return rows


def _spoken_name(key: Key) -> str:
    name = key._replace(statistic="").curve_name
    return name.replace("_", " ").replace("intra ", "intra-").replace("self ", "self-")


def _answer_column(key: Key, rows: Sequence[_Row], *, is_leading: bool) -> list[str]:
    """A curve's title and its cells in these rows, with chance beside; the leading one's with interval and range."""
    name = _spoken_name(key)
    spread = "sd of seeds" if any(results.info.seeds for _, results, *_ in rows) else "95% interval"
    heads, cells = [key.name.replace("_", " "), *[spread, "variants"] * is_leading, "chance"], list[list[str]]()
    for _, results, place, at in rows:
        value, low, high = _estimates_at(results, key, place, at)
        texts = [f"{value:z.3f}" if math.isfinite(value) else ""]
        if is_leading:
            ends = f"± {value - low:.3f}" if results.info.seeds else f"[{low:z.3f}, {high:z.3f}]"
            variants = (variant_range(results, key, at) if place == LAYER else None) or (math.nan, math.nan)
            texts += [ends if math.isfinite(low) else "", "–".join(f"{v:z.2f}" for v in variants if math.isfinite(v))]
        beside = keys_beside(results, key).get("chance")
        chance = _estimates_at(results, beside, place, at)[0] if beside else math.nan
        cells.append([*texts, f"{chance:.3f}" if math.isfinite(chance) else ""])
    # what no line has needs no head, and a value alone none either
    kept = [i for i in range(len(heads)) if i == 0 or any(texts[i] for texts in cells)]
    head, *lines = _align_cells([[texts[i] for i in kept] for texts in (heads, *cells)])
    return ["\n".join([*textwrap.wrap(name, max(MIN_COLUMN, len(head))), *[head] * (len(kept) > 1)]), *lines]


def run_document(runs: Sequence[LabelledResults], files: Sequence[Path] = ()) -> Document:
    """What a run or a sweep found, in full: its sentences, and the table that it ends with."""
    said = [text for label, results in runs for text in [*results.findings(label), *results.doubts]]
    table = main_table(runs)
    return Document(said, {"table": table} if table else {}, files=files)


def fitted_markdown(text: str, width: int) -> str:
    """A table in Markdown as it stands, or, where it is wider, with notes and the longest cells broken into lines; many
    columns may still be wider."""
    if max(map(len, text.splitlines()), default=0) <= width:
        return text
    parts = []
    for lines in (part.splitlines() for part in text.strip().split("\n\n")):
        if lines[0].startswith("|"):
            parts.append(_fitted_table(lines, width))
        else:
            parts += [
                "\n".join(textwrap.fill(line, width, subsequent_indent="  " * line.startswith("- ")) for line in lines)
            ]
    return "\n\n".join(parts)


def _fitted_table(lines: Sequence[str], width: int) -> str:
    """A table's lines in Markdown as columns beside each other, cells broken where the widest column would not fit."""
    head, _, *rows = ([cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines)
    columns = list(zip(head, *rows, strict=True))
    *others, _ = sorted(map(_column_width, columns))
    room = max(width - sum(others) - GAP * len(others), MIN_COLUMN)
    return _table([["\n".join(textwrap.wrap(cell, room)) for cell in column] for column in columns])


@dataclass(frozen=True)
class Table:
    """A table: `numbers` in full for the CSV, `shown` with cells as they are read; without `columns` it is not shown.

    Example:
        >>> import pandas as pd
        >>> table = Table("Words", pd.DataFrame({"word": ["bank"], "n": [2]}), ["word", "n"], [["bank", "2"]])
        >>> table.markdown().splitlines()[-1]
        '| bank | 2   |'
    """

    title: str
    numbers: pd.DataFrame
    columns: Sequence[str] = ()
    shown: Sequence[Sequence[str]] = ()  # rows of as many cells as columns
    notes: Sequence[str] = ()  # a line each: sources and choices

    def markdown(self) -> str:
        """The table as Markdown whose columns line up, so that it reads on a terminal too."""
        rows = [[cell.replace("|", "\\|") for cell in row] for row in (self.columns, *self.shown)]
        width = [max(3, *(len(row[i]) for row in rows)) for i in range(len(self.columns))]
        lines = ["| " + " | ".join(c.ljust(w) for c, w in zip(row, width, strict=True)) + " |" for row in rows]
        lines.insert(1, "|" + "|".join("-" * (w + 2) for w in width) + "|")
        notes = "".join(f"\n- {note}" for note in self.notes)
        return f"**{self.title}**\n\n" + "\n".join(lines) + "\n" + (f"{notes}\n" if notes else "")

    def latex(self) -> str:
        """The table for LaTeX with booktabs, long heads in lines."""
        lines = [" & ".join(map(_latex, row)) + r" \\" for row in self.shown]
        heads = []
        for name in self.columns:
            words = r"\\".join(map(_latex, textwrap.wrap(name, 12, break_long_words=False)))
            heads.append(rf"\shortstack[r]{{{words}}}" if r"\\" in words else words)
        head = " & ".join(heads)
        rows = "\n".join([r"\toprule", rf"{head} \\", r"\midrule", *lines, r"\bottomrule"])
        return f"\\begin{{tabular}}{{l{'r' * (len(self.columns) - 1)}}}\n{rows}\n\\end{{tabular}}\n"

    def save(self, folder: Path, name: str) -> list[Path]:
        """Write `name`.csv, the numbers in full, and the cells as they are read, if any, as `name`.md and for LaTeX as
        `name`.tex; the paths."""
        write_csv(self.numbers, folder / f"{name}.csv")
        forms = {"md": self.markdown, "tex": self.latex} if self.columns else {}
        return [folder / f"{name}.csv", *(write_file(folder / f"{name}.{kind}", of()) for kind, of in forms.items())]


def _latex(text: str) -> str:
    return re.sub(r"[\\~^\u2212]|[&%$#_{}]", lambda sign: _LATEX.get(sign[0], f"\\{sign[0]}"), text)


def write_tables(runs: Sequence[LabelledResults], folder: Path, registry: Registry) -> list[Path]:
    """Write each table that the registry offers and the runs give as CSV and Markdown; the paths."""
    return [path for name, table in _offers(runs, registry, tables=True) for path in table.save(folder, name)]


def write_figures(runs: Sequence[LabelledResults], folder: Path, registry: Registry) -> list[Path]:
    """Write each figure that the registry offers and the runs give as PNG and SVG; the paths."""
    return [
        path for name, figure in _offers(runs, registry, tables=False) for path in save_figure(figure, folder, name)
    ]


def _offers(runs: Sequence[LabelledResults], registry: Registry, *, tables: bool) -> Iterator[tuple[str, Any]]:
    """The tables, or figures, of these runs by the names of their files."""
    for offer in (registry.find(REPORT, name) for name in registry.names(REPORT)):
        if offer.is_table == tables:
            with offer.plugin_call():
                made = offer.factory(runs)
            if made:
                yield offer.name, made


def table_texts(folder: Path) -> list[str]:
    """The tables that lie in a sweep's summary folder, as text."""
    return [path.read_text(encoding="utf-8") for path in sorted(folder.glob(FILES))]


@dataclass(frozen=True, repr=False)
class Document:
    """Sentences, tables and figures: the command prints them, writes them to `out`, or gives them as JSON.

    Args:
        sentences: What was found, a line each.
        tables: By the names of their files; those with cells are printed before the sentences.
        figures: Of matplotlib, by the names of their files; written as PNG and SVG.
        files: Files that the verb wrote itself.
        status: The exit status: 0, or 1 where what was checked fails.

    Example:
        >>> Document(sentences=["One word is enough."]).text(80)
        'One word is enough.'
    """

    sentences: Sequence[str] = ()
    tables: Mapping[str, Table] = field(default_factory=dict)
    figures: Mapping[str, Figure] = field(default_factory=dict)
    files: Sequence[Path] = ()
    status: int = 0

    def save(self, out: Path | None) -> list[Path]:
        """Write tables and figures to `out`, a folder, or a .csv for the first table's numbers; all files of the verb.

        Nothing is written where `out` is None, or a file that the verb wrote itself.
        """
        paths = list(self.files)
        if out is None or out in paths:
            return paths
        if out.suffix == ".csv":
            write_csv(next(iter(self.tables.values())).numbers, out)
            return [*paths, out]
        paths += [path for name, table in self.tables.items() for path in table.save(out, name)]
        return paths + [path for name, figure in self.figures.items() for path in save_figure(figure, out, name)]

    def text(self, width: int, files: Sequence[Path] = ()) -> str:
        """As a terminal of this width shows it, the files last."""
        tables = [fitted_markdown(table.markdown(), width) for table in self.tables.values() if table.columns]
        return "\n".join([*tables, *self.sentences, *map(str, files)])

    def __repr__(self) -> str:
        return self.text(terminal_width(), self.files)

    def as_dict(self, files: Sequence[Path] = ()) -> dict[str, Any]:
        """As JSON has it: status, sentences, tables as rows of numbers in full (null: not finite), and files."""
        tables = {
            name: {"title": table.title, "rows": _rows(table.numbers), "notes": list(table.notes)}
            for name, table in self.tables.items()
        }
        return {
            "status": self.status,
            "sentences": list(self.sentences),
            "tables": tables,
            "files": [str(path) for path in files],
        }


def deliver(
    name: str, make: Callable[[], Document | int], out: Path | None, *, as_json: bool, shown: bool = True
) -> int:
    """Write the document that a verb makes to `out`, and print it: as the terminal shows it, or as one line of JSON,
    with all else that is printed on stderr. Returns the exit status; what isn't `shown` was printed by the verb."""
    try:
        with redirect_stdout(sys.stderr if as_json else sys.stdout):
            made = make()
            files = made.save(out) if isinstance(made, Document) else []
    except (DiskError, OSError) as error:
        if out is None or str(out) not in str(error) or "(out=)" in str(error):
            raise
        raise DiskError(f"{error} (out=)") from error
    if not isinstance(made, Document):
        return made
    if as_json:
        is_unicode = "utf" in (getattr(sys.stdout, "encoding", None) or "").lower()
        print(json.dumps({"verb": name, **made.as_dict(files)}, ensure_ascii=not is_unicode, default=str))
    elif shown:
        show(made.text(terminal_width(), files))
    elif out:
        show(f"table:  {out}")
    return made.status


def _rows(numbers: pd.DataFrame) -> list[dict[str, Any]]:
    cells = numbers.replace([math.inf, -math.inf], math.nan).astype(object)
    return cells.where(cells.notna(), None).to_dict("records")
