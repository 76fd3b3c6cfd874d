"""Text between the marks of a page."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxexp.errors import DataError
from docs.numbers.marked import marked, write_marked, write_small

PAGE = "before <!-- a: begin -->\n\nold\n\n- list\n\n<!-- a: end --> after\n<!-- b: begin -->\n\nb\n\n<!-- b: end -->\n"


def test_only_what_stands_between_is_replaced(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE, encoding="utf-8")
    assert (marked(page, "a"), marked(page, "b")) == ("old\n\n- list", "b")
    write_marked(page, "a", "new")
    assert page.read_text(encoding="utf-8") == PAGE.replace("old\n\n- list", "new")
    write_marked(page, "a", "old\n\n- list")
    assert page.read_text(encoding="utf-8") == PAGE


@pytest.mark.parametrize("text", ["no marks", "<!-- a: begin -->\nopen", "<!-- a: end --> <!-- a: begin -->"])
def test_a_page_without_both_marks_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text(text, encoding="utf-8")
    expected = r"page\.md: expected a line '<!-- a: begin -->' and after it '<!-- a: end -->'"
    with pytest.raises(DataError, match=expected):
        write_marked(tmp_path / "page.md", "a", "new")
    assert (tmp_path / "page.md").read_text(encoding="utf-8") == text


def test_a_small_picture_has_the_same_pixels_but_few_colours(tmp_path: Path) -> None:
    from PIL import Image

    drawn = Image.new("RGB", (40, 30), "white")
    drawn.paste((200, 0, 0), (5, 5, 20, 20))
    drawn.save(tmp_path / "drawn.png")
    write_small(tmp_path / "drawn.png", tmp_path / "new" / "small.png")
    with Image.open(tmp_path / "new" / "small.png") as small:
        assert small.mode == "P"
        assert small.convert("RGB").tobytes() == drawn.tobytes()
