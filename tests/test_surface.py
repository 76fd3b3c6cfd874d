"""What stands on ctxexp stands on its surface: plugins, benchmarks and the docs' scripts import what is public."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SURFACE = (
    "ctxexp",
    *(
        f"ctxexp.{room}"
        for room in ("command", "datasets", "errors", "maths", "models", "report", "results", "testing")
    ),
)
PLACES = {
    path.name: path
    for path in (*sorted(ROOT.glob("plugins/ctxexp-*/ctxexp_*")), ROOT / "benchmarks", ROOT / "docs" / "numbers")
}
REACHES_IN = "known_contextuality.py: "  # its knobs turn inside networks, and it judges the rules of claims


def inner_names(path: Path) -> Iterator[str]:
    """What a file imports of ctxexp that isn't public."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names if one.name.startswith("ctxexp.") and one.name not in SURFACE)
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "ctxexp":
            public = importlib.import_module(node.module).__all__ if node.module in SURFACE else ()
            names = (one.name for one in node.names if f"{node.module}.{one.name}" not in SURFACE)
            yield from (f"{node.module}.{name}" for name in names if name not in public)


@pytest.mark.parametrize("place", PLACES)
def test_it_imports_what_is_public(place: str) -> None:
    inner = [f"{path.name}: {name}" for path in PLACES[place].rglob("*.py") for name in inner_names(path)]
    assert not [name for name in inner if not name.startswith(REACHES_IN)]
