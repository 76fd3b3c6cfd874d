"""The notebooks run and show what is stored in them; a bar is a cell's only while its stage runs.

`python tests/test_notebooks.py` stores anew what they show now.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from tests.warm import Warm

BOOKS = sorted((Path(__file__).resolve().parent.parent / "docs" / "notebooks").glob("*.ipynb"))
NUMBER = re.compile(r"-?\d+\.\d+")
ADDRESS = re.compile("0x[0-9a-f]+")
PICTURE = re.compile(r'src="data:image/[\w+]+;base64,[^"]+"')


class Client(NotebookClient):
    """What a notebook's cells displayed or replaced, in order, as text."""

    shown: list[str]

    def process_message(self, message: dict[str, Any], cell: Any, index: int) -> Any:
        if message["msg_type"] in ("display_data", "update_display_data"):
            self.shown.append(message["content"]["data"]["text/plain"])
        return super().process_message(message, cell, index)


@contextmanager
def kernel(python: Path) -> Iterator[Callable[[Any, Path], list[str]]]:
    """What executes notebooks in place, in a folder, with one kernel, since each takes seconds to import libraries."""
    client = Client(nbformat.v4.new_notebook(), timeout=300, record_timing=False)
    client.create_kernel_manager().kernel_spec.argv[0] = str(python)
    with client.setup_kernel():

        def run(book: Any, folder: Path) -> list[str]:
            # `inline` is what a kernel sets where matplotlib isn't imported yet.
            lines = "import os", f"os.chdir({str(folder)!r})", "%matplotlib inline", "%reset -f"
            anew = nbformat.v4.new_code_cell("\n".join(lines))
            client.nb, client.shown = nbformat.v4.new_notebook(cells=[anew]), []
            client.execute_cell(anew, 0)
            client.nb = book
            client.reset_execution_trackers()
            for index, cell in enumerate(book.cells):
                client.execute_cell(cell, index)
            return client.shown

        yield run


@pytest.fixture(scope="module")
def run(warm: Warm) -> Iterator[Callable[[Any, Path], list[str]]]:
    with kernel(warm.python) as run:
        yield run


def told(cell: Any) -> list[tuple[str, str]]:
    """What a cell shows beside figures: (kind, text)."""
    parts = [o.data if "data" in o else {o.name: o.text} for o in cell.outputs]
    texts = [(kind, text) for part in parts for kind, text in sorted(part.items()) if kind != "image/png"]
    return [(kind, PICTURE.sub("", text)) for kind, text in texts]


@pytest.mark.parametrize("path", BOOKS, ids=lambda path: path.stem)
def test_its_links_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", path.read_text(encoding="utf-8")):
        assert (path.parent / target).exists(), target


@pytest.mark.slow
@pytest.mark.parametrize("path", BOOKS, ids=lambda path: path.stem)
def test_a_notebook_shows_what_is_stored_in_it(path: Path, tmp_path: Path, run: Callable[[Any, Path], Any]) -> None:
    stored, now = nbformat.read(path, as_version=4), nbformat.read(path, as_version=4)
    run(now, tmp_path)
    for then, cell in zip(stored.cells, now.cells, strict=True):
        if cell.cell_type != "code":
            continue
        assert [sorted(o.get("data", ())) for o in cell.outputs] == [sorted(o.get("data", ())) for o in then.outputs]
        for (kind, was), (_, text) in zip(told(then), told(cell), strict=True):
            was, text = ADDRESS.sub("", was), ADDRESS.sub("", text)
            assert NUMBER.sub("#", text).split() == NUMBER.sub("#", was).split(), cell.source
            numbers = [[float(n) for n in NUMBER.findall(t)] for t in (text, was)]
            assert numbers[0] == pytest.approx(numbers[1], abs=2e-3), (kind, cell.source)
    assert all(o.name != "stderr" for cell in now.cells for o in cell.get("outputs", ()) if "name" in o)
    assert path.stat().st_size < 320_000


if __name__ == "__main__":
    for path in BOOKS:
        book = nbformat.read(path, as_version=4)
        with kernel(Path(sys.executable)) as run, TemporaryDirectory() as folder:
            run(book, Path(folder))
        nbformat.write(book, path)
