"""docs/atlas: every file is a row by the schema, and the page says what the files say."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ctxexp_compare.card_command import card

from ctxexp.errors import DataError
from docs.numbers import atlas
from docs.numbers.atlas import TEXTS, read_row
from docs.numbers.marked import marked
from docs.numbers.part import ROOT

CARDS = sorted((ROOT / atlas.FOLDER).iterdir())
ROWS = atlas.rows()
CONTROL = "random-words.embedded"  # no context, whatever the text


@pytest.mark.parametrize("path", CARDS, ids=lambda path: path.name)
def test_each_card_is_a_row(path: Path) -> None:
    """What a pull request with a new one has to pass."""
    assert path.suffix == ".json"
    row = read_row(path)
    assert TEXTS[row.text].typed in row.command
    page = atlas.card_page(row)
    assert row.command in page
    assert page.count("\n| ") == row.run.model.n_layers + 2


def test_the_page_has_a_row_for_each_card() -> None:
    assert marked(ROOT / atlas.PAGE, atlas.MARK).count("atlas/") == len(CARDS)
    shipped = {
        title for title, typed in atlas.MODELS.values() if typed.split()[0] in ("bert", "gpt2", "elmo", "random_words")
    }
    there = {(row.title, row.text) for row in ROWS.values()}
    assert there >= {(title, text) for title in shipped for text in TEXTS}
    assert there >= {(title, "embedded") for title, _ in atlas.MODELS.values()}


def test_a_row_s_command_makes_its_card(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CTXEXP_CACHE", str(tmp_path))
    row = ROWS[CONTROL]
    _, _, run, title = shlex.split(row.command)
    assert [run, title] == atlas.command("random-words", "embedded")[2:]
    card(run, title=title.removeprefix("title="), out=tmp_path)
    again = read_row(tmp_path / "card.json")
    assert again.command == row.command
    for key, curve in row.curves.items():
        assert again.curves[key].value == pytest.approx(curve.value, abs=1e-5), key


Change = Callable[[dict[str, Any]], object]
REFUSED = {
    "a path": (
        lambda row: row.update(command="ctxexp card 'huggingface model.checkpoint=/home/me/model'"),
        "expected ctxexp card 'MODEL key=value', without a path on your machine",
    ),
    "a run's folder": (lambda row: row.update(command=""), "'': expected ctxexp card"),
    "another text": (
        lambda row: row["run"]["corpus"].update(name="mine", fingerprint="0"),
        r"the text is 'mine', none of the atlas'; expected a run with dataset=polysemy or",
    ),
    "a control": (lambda row: row["run"].update(control="shuffled"), "expected control=none, transform=none"),
    "few resamples": (lambda row: row["run"].update(bootstrap=99), "99 resamples; expected bootstrap=100 or more"),
    "no curve": (lambda row: row["curves"].pop("self_similarity/raw"), "no curve self_similarity/raw"),
    "a layer too many": (
        lambda row: row["curves"][atlas.CONTEXT]["value"].append(0.0),
        "contextuality/raw: 2 values; the model has 1 layers",
    ),
    "no cosine": (
        lambda row: row["curves"]["self_similarity/raw"].update(value=[1.2]),
        "layer 0: .* from -1 to 1",
    ),
    "an interval beside": (
        lambda row: row["curves"]["self_similarity/raw"].update(high=[0.5]),
        "expected low <= value",
    ),
    "no run": (lambda row: row.pop("run"), "run: Field required"),
}


@pytest.mark.parametrize(("change", "message"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_row_is_refused_with_its_reason(change: Change, message: str, tmp_path: Path) -> None:
    row = json.loads((ROOT / atlas.FOLDER / f"{CONTROL}.json").read_text(encoding="utf-8"))
    change(row)
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(row), encoding="utf-8")
    with pytest.raises(DataError, match=message) as raised:
        read_row(path)
    assert str(raised.value).startswith(f"{path}: ")
    assert str(raised.value).endswith("; a row is the card.json of `ctxexp card`")
