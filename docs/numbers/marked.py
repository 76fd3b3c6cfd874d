"""Parts of the docs that scripts write: text between two marks of a Markdown page, and pictures small enough for it."""

from __future__ import annotations

from pathlib import Path

from ctxexp.errors import DataError
from ctxexp.report import write_file

COLOURS = 256  # of a picture: curves, text and bands over bands need no more


def marked(page: Path, name: str) -> str:
    """The text between `<!-- name: begin -->` and `<!-- name: end -->`. Raises DataError where a mark is missing."""
    return _parts(page, name)[1]


def write_marked(page: Path, name: str, text: str) -> None:
    """Put `text` in place of what stands between the marks."""
    before, _, after = _parts(page, name)
    write_file(page, f"{before}\n\n{text}\n\n{after}")


def write_small(picture: Path, target: Path) -> None:
    """A PNG with a palette of few colours."""
    from PIL import Image

    target.parent.mkdir(parents=True, exist_ok=True)
    with Image.open(picture) as drawn:
        drawn.convert("RGB").quantize(COLOURS).save(target, optimize=True)


def _parts(page: Path, name: str) -> tuple[str, str, str]:
    begin, end = (f"<!-- {name}: {which} -->" for which in ("begin", "end"))
    before, found, rest = page.read_text(encoding="utf-8").partition(begin)
    text, closed, after = rest.partition(end)
    if not found or not closed:
        raise DataError(f"{page}: expected a line {begin!r} and after it {end!r}, to put text between")
    return before + begin, text.strip("\n"), end + after
