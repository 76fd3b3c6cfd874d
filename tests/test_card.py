"""The minis' card: its tables are what the script measures, and its words agree with its tables."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from docs.numbers import card, records, what_is_context
from docs.numbers.marked import marked
from tests.made import results_with
from tests.shipped import mini

TEXT = card.CARD.read_text(encoding="utf-8")
TABLES = marked(card.CARD, card.MARK)
PROSE = TEXT.partition(TABLES)[2].split("## Limits")[0]
COLUMNS = [(model, weights) for model in card.MODELS for weights in card.WEIGHTS]
STATISTICS = ("raw", "baseline", "adjusted", "share_of_room")
KEYS = (*(f"self_similarity/{name}" for name in STATISTICS), "sense_separation/raw", "sts/all")
STANDINGS = "words of lower self-similarity, mean over layers"


def rows() -> dict[str, dict[str, list[str]]]:
    """The tables by their first heading, their rows by title: cells."""
    found = {}
    for table in filter(lambda part: part.startswith("|"), TABLES.strip().split("\n\n")):
        head, _, *lines = ([cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines())
        found[head[0]] = {line[0]: line[1:] for line in lines}
    return found


def figures(title: str, model: str, weights: str = "mini", table: str = "layer 0, 1, ...") -> list[float]:
    """Of curves a value a layer; of a last layer value, low and high."""
    cell = rows()[table][title][COLUMNS.index((model, weights))]
    return [float(number) for number in re.findall(r"-?[\d.]+", cell)]


def last(title: str, model: str, weights: str = "mini") -> list[float]:
    return figures(title, model, weights, "last layer, 95% interval")


def standing(name: str) -> dict[str, float]:
    cells = rows()[STANDINGS][name]
    return {word: float(cell.rstrip("%")) for word, cell in zip(card.FUNCTION_WORDS, cells, strict=False)}


@pytest.mark.parametrize("model", card.MODELS)
def test_the_first_sentences_give_what_the_card_says(model: str, tmp_path: Path) -> None:
    found = card.beginning(model, "mini", f"cache.folder={tmp_path}", "bootstrap=0")
    said = figures(f"self-similarity, raw, first {card.FIRST} sentences alone", model)
    assert said == pytest.approx(found.by_name["self_similarity/raw"].tolist(), abs=0.0011)  # its three figures


RAW, SHARE = "self-similarity, raw", "self-similarity, share of the room above chance"
SENSES = "same sense minus other sense, cosine"
STS, WHITENED = "STS-B test, Spearman × 100, mean of words", "the same, whitened on these sentences"


def gain(title: str, model: str) -> list[float]:
    """Trained less untrained: value, low and high."""
    cell = rows()["trained less untrained, 95% interval"][title][card.MODELS.index(model)]
    return [float(number) for number in re.findall(r"-?[\d.]+", cell)]


def clear(title: str) -> dict[str, int]:
    """Of each model whether training gained (1) or lost (-1) more than chance, or neither (0)."""
    ends = {model: gain(title, model)[1:] for model in card.MODELS}
    return {model: (low > 0) - (high < 0) for model, (low, high) in ends.items()}


STATEMENTS: dict[str, Callable[[], bool]] = {
    "bert-mini only, as a share of the room above chance, in its last layer, by .010": lambda: (
        clear(f"{SHARE}, last layer") == {"bert": -1, "gpt2": 1, "elmo": 1}
        and clear("the same, the layer before") == {"bert": 1, "gpt2": 1, "elmo": 1}
        and gain(f"{SHARE}, last layer", "bert")[0] == -0.010
    ),
    "elmo-mini falls far below it raw, but as that share it does not": lambda: (
        figures(RAW, "elmo")[-1] < figures(RAW, "elmo", "untrained")[-1] - 0.2
        and figures(SHARE, "elmo")[-1] > figures(SHARE, "elmo", "untrained")[-1]
    ),
    "gpt2-mini lies above its control either way": lambda: all(
        mine > other
        for title in (RAW, SHARE)
        for mine, other in zip(figures(title, "gpt2")[2:], figures(title, "gpt2", "untrained")[2:], strict=True)
    ),
    "bert-mini and elmo-mini fall from layer 0 to their last, gpt2-mini rises to layer 1 and then falls": lambda: (
        all((curve := figures(SHARE, model))[0] == max(curve) > curve[-1] for model in ("bert", "elmo"))
        and (curve := figures(SHARE, "gpt2"))[0] < curve[1]
        and curve[1:] == sorted(curve[1:], reverse=True)
    ),
    "in none of the three as the paper has it": lambda: all(
        max(standing(f"{model}-mini").values()) >= 10 for model in card.MODELS
    ),
    "*of*, *to* and *and* are, *the* and *a* (23%) aren't": lambda: (
        [standing("gpt2-mini")[word] < 10 for word in ("of", "to", "and", "the", "a")] == [True] * 3 + [False] * 2
        and standing("gpt2-mini")["a"] == 23
    ),
    "So they are in elmo-mini, whose *the* stands at the tenth itself": lambda: (
        {w for w, s in standing("elmo-mini").items() if s < 10} == {"of", "to", "and"}
        and standing("elmo-mini")["the"] == 10
    ),
    "in bert-mini all five lie above the lowest 30%": lambda: min(standing("bert-mini").values()) > 30,
    "*Are* before all": lambda: all(rows()[STANDINGS][f"{m}-mini"][-1].startswith("Are,") for m in ("bert", "gpt2")),
    "*cast*, *or* and *only* before all": lambda: rows()[STANDINGS]["elmo-mini"][-1].startswith("cast, or, only,"),
    "in all three and in every layer above 0": lambda: all(
        min(figures(SENSES, model)[1:]) > 0.01 and last(SENSES, model)[1] > 0.01 for model in card.MODELS
    ),
    "untrained BERT and GPT-2 they don't": lambda: all(
        last(SENSES, model, "untrained")[1] <= 0 <= last(SENSES, model, "untrained")[2] for model in ("bert", "gpt2")
    ),
    "highest in layer 1": lambda: max(figures(SENSES, "bert")) == figures(SENSES, "bert")[1],
    "It grows towards the top in gpt2-mini and elmo-mini": lambda: all(
        figures(SENSES, model) == sorted(figures(SENSES, model)) for model in ("gpt2", "elmo")
    ),
    "only gpt2-mini gains.": lambda: clear("the same, each at its best layer") == {"bert": 0, "gpt2": 1, "elmo": 0},
    "In the last layer bert-mini loses 22.5 and elmo-mini 14.3": lambda: (
        [gain("STS-B test, last layer", model)[0] for model in ("bert", "elmo")] == [-22.5, -14.3]
    ),
    "helps trained and untrained vectors alike": lambda: all(
        after > before
        for column in COLUMNS
        for before, after in zip(figures(STS, *column), figures(WHITENED, *column), strict=True)
    ),
    "in two of three what training at this scale brought is then a loss": lambda: (
        clear("STS-B test, whitened, last layer") == {"bert": -1, "gpt2": 1, "elmo": -1}
    ),
}  # fmt: skip


@pytest.mark.parametrize("words", STATEMENTS)
def test_what_the_card_says_its_tables_show(words: str) -> None:
    assert words in " ".join(PROSE.split())
    assert STATEMENTS[words]()


def test_every_figure_of_the_cards_words_is_in_its_tables() -> None:
    assert set(re.findall(r"\d*\.\d+", PROSE)) <= set(re.findall(r"\d*\.\d+", TABLES))


def test_the_cards_sts_numbers_agree_with_other_tables() -> None:
    """The parts' row of the shipped weights has the loss and the score that the card's own tables have."""
    section = TEXT.partition("## Better language modelling")[2].split("## Text")[0]
    [shipped] = [line for line in section.splitlines() if "(as shipped)" in line]
    _, loss, words, types, rest, first = (cell.strip() for cell in shipped.strip("|").split("|"))
    assert f"| bert-mini | a masked piece (15% of pieces masked) | {loss} |" in TEXT
    assert float(words) == last("STS-B test", "bert")[0]
    assert float(types) > float(words) > float(rest)
    assert float(first) < 0


def test_tables_are_made_of_curves_intervals_and_words() -> None:
    curves = {f"{key}{end}": np.array([0.5, 36.44]) for key in KEYS for end in ("", "_ci_low", "_ci_high")}
    table = pd.DataFrame({"word": ["the", "a", "cat", "Are"], "mean": [0.9, 0.2, 0.5, 0.1]})
    one = results_with(curves=curves, tables={"self_similarity": table})
    found = {column: dict.fromkeys(("words", "first", "sts", "whitened"), one) for column in COLUMNS}
    made = card.section(found)
    assert f"\n| self-similarity, raw | {' | '.join(['.500 36.4'] * 6)} |\n" in made
    assert f"\n| STS-B test | {' | '.join(['36.4 [36.4, 36.4]'] * 6)} |\n" in made
    assert f"\n| STS-B test, last layer | {' | '.join(['.000 [nan, nan]'] * 3)} |\n" in made  # it has no resamples
    assert "\n| elmo, untrained | 75% | - | - | - | 25% | Are, a, cat, the |\n\n" in made
    assert made.endswith("\n\nEach model is one training run: intervals are over the text, not over trainings.")
    heads = [table.splitlines()[0] for table in made.split("\n\n")]
    assert heads == [table.splitlines()[0] for table in TABLES.strip().split("\n\n")]


def test_a_folder_without_the_benchmark_is_said_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert card.main(["--sts", str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith(f"error: {tmp_path} (dataset.path) should hold")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0.6701, ".670"),
        (1.0, "1"),
        (0.9996, "1"),
        (-0.002, "-.002"),
        (-0.0001, ".000"),
        (36.44, "36.4"),
        (9.7219, "9.72"),
        (1.0004, "1"),
    ],
)
def test_numbers_have_three_figures(value: float, said: str) -> None:
    assert card.number(value) == said


def test_training_tables_and_words_come_from_the_records() -> None:
    for mark, table in card.recorded().items():
        assert marked(card.CARD, mark) == table
    bert, elmo = (json.loads((mini(model) / "run.json").read_text()) for model in ("bert", "elmo"))
    found = elmo["held_out"]
    assert f"at {found['forward']:.3f} (forward) and {found['backward']:.3f} (backward)" in " ".join(TEXT.split())
    assert f"its held-out loss there is {bert['held_out']['late']:.3f} nats" in " ".join(TEXT.split())
    recipe = bert["recipe"]["model"]
    grown = bert["steps"] - round(bert["steps"] * recipe["long_share"])
    assert f"not moved them {recipe['extend'] - grown} steps after" in " ".join(TEXT.split())


def test_positions_make_the_cards_shares_of_layer_0() -> None:
    said = "a third of the variance of bert-mini's layer 0 and a fifth of gpt2-mini's"
    assert said in " ".join(TEXT.split())
    numbers = what_is_context.PART.read().query("corpus == 'polysemy' and words == 'all' and layer == 0")
    shares = numbers.set_index("model").position
    assert (shares.bert, shares.gpt2) == pytest.approx((1 / 3, 1 / 5), abs=0.02)


def test_records_become_tables_with_a_row_a_stage(tmp_path: Path) -> None:
    shape = {
        "rows": 64,
        "window": 64,
        "long": 128,
        "long_share": 0.4,
        "mask": 0.3,
        "muon_rate": 0.02,
        "adamw_rate": 0.002,
    }
    recipe = {"model": shape, "words": 12_000_000, "decay": 0.5}
    held = {"loss": 1.0, "unigram": 3.0, "right": 0.5, "predicted": 1000.0}
    first = {"steps": 10, "best_step": 6, "units": 1_500_000, "unit": "piece", "minutes": 2.4, "held_out": held}
    first["recipe"] = recipe
    then = recipe | {"words": 48_000_000, "skip": 12_000_000}
    second = first | {"recipe": then, "went_on_from": first, "held_out": held | {"late": 1.25}}
    head, row = records.losses({"bert": second})
    assert dict(zip(head, row, strict=True)) == {
        "model": "bert-mini", "predicts": "a masked piece (15% of pieces masked)", "loss": "1.000", "unigram": "3.000",
        "learnt": "2.000", "perplexity": "3", "best guess right": "50.0%", "on": "1,000 pieces",
        "loss at later positions": "1.250",
    }  # fmt: skip
    assert records.losses({"bert": first})[1][-1] == "-"
    _, one, two = records.budget({"bert": second})
    assert [one[:4], two[:4]] == [
        ["bert-mini, stage 1", "the first 12.0 million words", "10", "1.50 million pieces"],
        ["bert-mini, stage 2", "the next 36.0 million words", "10", "1.50 million pieces"],
    ]
    assert one[4] == "64 windows of 64 pieces; the last 40% of the steps 32 of 128"
    (tmp_path / "run.json").write_text(json.dumps(first))
    (tmp_path / "held_out.csv").write_text(
        "step,loss\n" + "".join(f"{i},{10 - i / 10}\n" for i in range(1, 31)) + "30,1\n"
    )
    assert records.curves({"bert": tmp_path})[1][1] == "; ".join(f"{i}: {10 - i / 10:.2f}" for i in range(3, 31, 3))
