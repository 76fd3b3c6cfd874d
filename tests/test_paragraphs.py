"""What docs/numbers makes of planted numbers, and what the pages say by hand of the kept ones."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
from ctxexp_compare import Cka, MutualNeighbours, Space, similarities
from ctxexp_papers.first_word.words import sink_layers
from ctxexp_papers.multiverse.specifications import CHOICES

from docs.numbers import (
    by_class,
    first_word,
    label_probe,
    league,
    multiverse,
    penalty,
    points,
    precision,
    probe,
    split_words,
    table_1,
    training_steps,
    two_spaces,
    usages,
    what_is_context,
)
from docs.numbers.marked import marked
from docs.numbers.part import ROOT, Part
from tests.made import results_with

ISS = "intra_sentence_similarity"


def quoted(page: str, after: str, *, until: str = "\n#") -> str:
    """The sentences by hand that follow a marked table."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return " ".join(text.partition(f"<!-- {after}: end -->")[2].partition(until)[0].split())


def numbers_in(text: str) -> set[str]:
    return set(re.findall(r"(?<![\w.])[-+−]?\d[\d,]*(?:\.\d+)?%?", text))


def shares(numbers: pd.DataFrame, choice: str) -> dict[str, str]:
    """Of the specifications with each option of the choice those that fall: `44 of 48`."""
    single = numbers[numbers.verdict.notna()]
    each = single.assign(option=single[choice].str.split(" or ")).explode("option")
    return {str(name): f"{(of.verdict == 'falls').sum()} of {len(of)}" for name, of in each.groupby("option")}


def test_the_multiverse_is_quoted_as_counted() -> None:
    numbers = multiverse.PART.read()
    said = quoted(multiverse.PART.page, "multiverse")
    counts = numbers.verdict.value_counts()
    assert f"Of the {counts.sum()} ways to measure `{numbers.model.iloc[0]}`" in said
    assert f"fall in {counts.falls}. They rise in {counts.rises} and are open in {counts.open}." in said
    by_choice = {choice: shares(numbers, choice) for choice in CHOICES}
    falls = {choice: [Fraction(text.replace(" of ", "/")) for text in of.values()] for choice, of in by_choice.items()}
    top = max(falls, key=lambda choice: max(falls[choice]) - min(falls[choice]))
    assert f"Most hangs on the {top}" in said
    options = re.findall(r"with \*([^*]+)\* (?:they fall )?in (\d+ of \d+)", said)
    assert len(options) == 2
    assert all(by_choice[top][name] == share for name, share in options)


@pytest.mark.parametrize(("part", "known"), [
    (usages.PART, {"50%", "5%", "95%", "57.7%", "59.3%", "65.5%", "2019"}),  # chance, and what others published
    (what_is_context.PART, {"0"}),
    (two_spaces.PART, {"0", "1"}),
    (label_probe.PART, {"2"}),  # GPT-2
    (split_words.PART, {"2"}),
    (training_steps.PART, {"2"}),
])  # fmt: skip
def test_sentences_quote_numbers_of_their_table(part: Part, known: set[str]) -> None:
    said = numbers_in(quoted(part.page, part.mark))
    assert said
    assert said - known <= numbers_in(part.said())


def test_self_similarity_rises_in_both_trainings() -> None:
    assert "the last layer's self-similarity *rises*: in BERT" in quoted(
        training_steps.PART.page, training_steps.PART.mark
    )
    numbers = training_steps.PART.read()
    last = numbers[(numbers.layer == numbers.layer.max()) & (numbers.measure == "self_similarity")]
    by_step = last.pivot(index="step", columns="training", values="value")
    assert (by_step.loc[512] > by_step.loc[0] + 0.02).all()


def test_the_joint_statistics_are_a_table() -> None:
    joint = pd.DataFrame({"name": ["median effect", "share that falls"], "value": [-0.1234, 0.5], "p": [0.15, np.nan]})
    joint = joint.assign(null="untrained twin", expected=[-0.01, 0.25], verdict=np.nan)
    assert multiverse.table(joint).splitlines()[2:] == [
        "| median effect | \u22120.123 | untrained twin | \u22120.010 | 0.150 |",
        "| share that falls | 50% | untrained twin | 25% |  |",
    ]


def test_a_league_s_last_layers_are_a_table(tmp_path: Path) -> None:
    rows = [
        {"model": model, "vectors": vectors, "transform": name, "average": 40.123, "gain": 2.5}
        for model in ("one", "two")
        for vectors in ("last layer", "best layer of none")
        for name in ("rank", *league.SHOWN, "none")
    ]
    pd.DataFrame(rows).assign(gain_ci_low=-1.0, gain_ci_high=6.004).to_csv(tmp_path / "table_league.csv", index=False)
    gain = "+2.50 [-1.00, 6.00]"
    assert league.table(league.last_layers(tmp_path)).splitlines()[2:] == [
        *(f"| {model} | 40.12 | {gain} | {gain} | {gain} |" for model in ("one", "two")),
        "",
        "Each model is one training run.",  # intervals are over pairs here, over seeds of the flow there
    ]


@pytest.mark.parametrize("part", [by_class, league, table_1, two_spaces, usages, what_is_context])
def test_what_compares_models_says_that_each_is_one_training_run(part: ModuleType) -> None:
    numbers = part.PART.read()
    said = part.table(numbers)
    assert said.count("Each model is one training run") == 1
    if "model" in numbers:
        alone = part.table(numbers[numbers.model == numbers.model.iloc[0]])
        assert "training run" not in alone
    page = (ROOT / first_word.PART.page).read_text(encoding="utf-8")
    assert "Each model is one training run." in " ".join(page.partition("<!-- first word: end -->")[2].split())[:600]


def test_flow_exceeds_the_mean_but_not_clearly_whitening() -> None:
    said = "it gains much over the raw vectors, more than a mean explains, and not clearly more than whitening"
    assert said in (ROOT / league.PART.page).read_text(encoding="utf-8")
    by = {name: rows.set_index("model") for name, rows in league.PART.read().groupby("transform")}
    assert (by["flow"].gain_ci_low > 5).all()
    assert (by["flow"].gain_ci_low > by["center"].gain_ci_high).all()
    assert (by["flow"].gain_ci_low <= by["whitening"].gain).all()


def test_tables_of_the_probe_become_a_column_a_network(tmp_path: Path) -> None:
    shares = {f"s_{layer}": [None, None, None, share] for layer, share in enumerate((0.25, 0.75))}
    known = {"use": ["chance", "frozen", "frozen", "mix"], "layer": ["", "0", "1", "0-1"]}
    rows = pd.DataFrame(known | {"ci_low": 0.31, "ci_high": 0.99} | shares)
    rows = rows.assign(accuracy=[0.4, 0.5, 1.0, 0.6254], s_0_sd=0.1)
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        rows.to_csv(tmp_path / name / "probe.csv", index=False)
    assert probe.table(probe.collected(tmp_path)).splitlines() == [
        "| accuracy | one | two |",
        "|---|---|---|",
        "| chance | .400 [.310, .990] | .400 [.310, .990] |",
        "| layer 0 | .500 [.310, .990] | .500 [.310, .990] |",
        "| layer 1 | 1.000 [.310, .990] | 1.000 [.310, .990] |",
        "| mix | .625 [.310, .990] | .625 [.310, .990] |",
        "| shares of the mix, by layer | .25, .75 | .25, .75 |",
    ]


def test_the_mix_is_above_layer_0_and_like_others() -> None:
    numbers = probe.PART.read()
    mini = numbers[numbers.network == "mini"].set_index(["use", "layer"])
    above = mini.loc["frozen"].minus_mix_ci_high < 0
    assert above["0"]
    for alike in (mini.loc["frozen"].iloc[-1], mini.loc["all"].iloc[0]):
        assert alike.minus_mix_ci_low <= 0 <= alike.minus_mix_ci_high


def test_spaces_most_alike_are_named(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    spaces = [Space.of_arrays(name, rng.normal(size=(2, 30, 4))) for name in ("one", "other")]
    found = similarities(spaces, [Cka(), MutualNeighbours()], bootstrap=20)
    found.frame.to_csv(tmp_path / "compare.csv", index=False)
    few = two_spaces.kept(tmp_path)
    assert len(few) == 2 * 6
    i, j = np.unravel_index(np.argmax(found.matrices["cka"].value[:2, 2:]), (2, 2))
    assert two_spaces.table(few).splitlines()[2].startswith(f"| most alike of two models by CKA | one {i}, other {j} |")


def test_table_1_holds_what_was_measured(tmp_path: Path) -> None:
    pd.DataFrame(
        {"source": ["published", "measured"], "model": ["GloVe", "mine"], "layer": [None, 2.0]}
        | {name: [0.5, -0.25] for name in table_1.HEADINGS}
        | {f"{name}_covered": [None, 0.4] for name in table_1.HEADINGS}
    ).to_csv(tmp_path / "table_1.csv", index=False)
    lines = table_1.table(table_1.measured(tmp_path)).splitlines()
    assert lines[0].startswith("| model, layer | SimLex (40%) | MEN (40%)")
    assert lines[2:] == ["| mine, 2 |" + " -.250 |" * 9]
    assert set(table_1.PART.read().model) == {"glove", "minilm", "smollm2"}


def test_components_stand_in_a_table() -> None:
    rows = []
    for words in ("all", "ambiguous"):
        for layer, context in enumerate((0.01, 0.4, 0.3)):
            row = {"model": "m", "corpus": "c", "words": words, "layer": layer, "position": 0.1 * layer, "rest": 0.2}
            row |= {"context": context, "context_low": context - 0.01, "context_high": context + 0.01}
            rows.append(row | {"sense": context / 10, "sense_low": 0.0, "sense_high": 0.05, "sentence": 0.1})
    assert what_is_context.table(pd.DataFrame(rows)).splitlines()[2:] == [
        "| `m` | c | 1.0% [0.0, 2.0] | 40.0% [39.0, 41.0] (layer 1) |  | 30.0% [29.0, 31.0] |  |  | 10% | 20% | "
        "20% (layer 2) | 4.0% [0.0, 5.0] (layer 1) |  |"
    ]


def test_usages_stand_in_a_table() -> None:
    told = [
        {"dtype": "bfloat16", "model": "m", "corpus": "wic", "task": task, "statistic": name, "layer": layer,
         "value": v, "low": v - 0.01, "high": v + 0.01, "measure": "wic"}
        for task in ("dev", "test") for name in ("accuracy", "form", "position")
        for layer, v in enumerate((0.5, 0.6 if task == "dev" else 0.58, 0.55))
    ]  # fmt: skip
    assert usages.table(pd.DataFrame(told)).splitlines()[2] == (
        "| `m`, bfloat16 | 1 | 60.0% [59.0, 61.0] | 58.0% [57.0, 59.0] | 55.0% [54.0, 56.0] | 50.0% [49.0, 51.0] | "
        "50.0% | 50.0% |"
    )


def test_what_is_said_of_classes_is_their_last_layer(tmp_path: Path) -> None:
    rows = []
    for measure, kinds in (("sense_separation_by_class", {"pos": "NOUN", "pieces": "1"}),
                           ("variance_components_by_class", {"pos": "NOUN", "frequency": "10-29", "pieces": "1"}),
                           ("self_similarity_by_class", {"pieces": "1"})):  # fmt: skip
        for kind, name in kinds.items():
            for layer, value in enumerate((0.9, 0.25)):
                row = {"model": "m", "corpus": "c", "measure": measure, "kind": kind, "class": name, "layer": layer}
                rows.append({**row, "value": value, "low": value - 0.1, "high": value + 0.1})
        rows.append({**rows[-1], "class": "few", "value": None, "low": None, "high": None})
    pd.DataFrame(rows).to_csv(tmp_path / "table_by_class.csv", index=False)
    assert by_class.table(by_class.last_layers(tmp_path)).splitlines() == [
        "| | class | m, layer 1 |",
        "|---|---|---|",
        "| sense separation | NOUN | 0.250 [0.150, 0.350] |",
        "| sense separation | 1 tokens | 0.250 [0.150, 0.350] |",
        "| context | NOUN | 25% [15, 35] |",
        "| context | 10-29 occurrences | 25% [15, 35] |",
        "| context | 1 tokens | 25% [15, 35] |",
        "| self-similarity | 1 tokens | 0.250 [0.150, 0.350] |",
    ]


def test_words_of_several_tokens_vary_less_with_their_context() -> None:
    """As the page says of every model that splits words."""
    numbers = by_class.PART.read()
    shares = numbers[(numbers.measure == "variance_components_by_class") & (numbers.kind == "pieces")]
    split = shares.pivot_table(index="model", columns="class", values=["low", "high"]).dropna()
    assert len(split) == 3
    assert (split["high"]["2"] < split["low"]["1"]).all()
    assert (split["high"]["3+"] < split["low"]["1"]).all()


def first_words() -> pd.DataFrame:
    """smol2's words are alike in layer 1 unless they are read as tokenized, its sentences too; nothing moves plain."""
    rows = []
    for model, metric, condition, curve in (
        ("smollm2", ISS, "as tokenized", [0.3, -0.01]),
        ("smollm2", ISS, "BOS first", [0.3, 0.24]),
        ("smollm2", ISS, "unit norm", [0.3, 0.23]),
        ("plain", ISS, "as tokenized", [0.2, 0.2]),
        ("plain", ISS, "BOS first", [0.2, 0.21]),
        ("smollm2", "sts", "as tokenized", [50, 9.9]),
        ("smollm2", "sts", "BOS first", [50, 51.5]),
    ):
        base = {"smollm2": [0.3, -0.01] if metric == ISS else [50, 9.9], "plain": [0.2, 0.2]}[model]
        for layer, (value, own) in enumerate(zip(curve, base, strict=True)):
            moved = value - own
            rows.append(
                {"measure": metric, "model": model, "corpus": "sts_b" if metric == "sts" else "polysemy",
                 "condition": condition, "layer": layer, "value": value, "matched": value - 0.2, "difference": moved,
                 "low": moved - 0.004, "high": moved + 0.004}
            )  # fmt: skip
    return pd.DataFrame(rows)


def test_the_first_positions_table_is_made_of_the_numbers() -> None:
    head = "| what stands first | layer 1 | layers within .05 of 0 | length-matched, layer 1 | within .05 of 0 |"
    assert first_word.table(first_words()).splitlines() == [
        f"{head} STS-B, layer 1 | plain moves at most by |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        "| as tokenized | −0.01 | 1 of 2 | −0.21 | 0 of 2 | 9.9 |  |",
        "| BOS first | 0.24 | 0 of 2 | 0.04 | 1 of 2 | 51.5 | +0.010 [+0.006, +0.014] |",
        "| unit norm | 0.23 | 0 of 2 | 0.03 | 1 of 2 | as tokenized |  |",
    ]
    words = first_words()
    assert first_word.table(words[words.measure == ISS]).splitlines()[0] == f"{head} plain moves at most by |"


def test_a_known_sink_moves_smollm2_alone() -> None:
    """The finding itself, of the numbers on file."""
    numbers = first_word.PART.read()
    words = numbers[numbers.measure == ISS]
    at = {str(model): sink_layers(rows) for model, rows in words.groupby("model")}
    assert set(range(13, 29)) <= set(at["smollm2"])
    assert at["gpt2"] == at["bert"] == []
    quoted = first_word.facts(numbers)
    page = (ROOT / first_word.PART.page).read_text(encoding="utf-8")
    assert f"{quoted['near 0 as tokenized']} layers" in page
    assert f"{quoted['length-matched without']} layers" in page


def test_what_a_precision_moves_is_the_largest_of_its_models() -> None:
    table = pd.DataFrame({"word": ["a", "b"], "raw_0": [0.5, 0.25], "adjusted_0": [0.1, 0.2]})
    moved = table.assign(raw_0=[0.5, 0.2535], adjusted_0=9.0)
    exact, other = (
        results_with(
            {"self_similarity/raw": np.array([raw]), "word_norm/raw": np.array([norm])},
            tables={"self_similarity": words},
        )
        for raw, norm, words in ((0.5, 1.0, table), (0.4984, 9.0, moved))
    )
    assert precision.moved(exact, other) == pytest.approx((0.0016, 0.0035))
    assert precision.table({"float16": [(0.0016, 0.000031), (0.00002, 0.000042)]}).splitlines()[2:] == [
        "| `float16` (bert, gpt2) | 0.002 | 0.00004 |"
    ]
    lines = marked(precision.PAGE, precision.MARK).splitlines()
    assert [line.split("`")[1] for line in lines[2:]] == [*precision.MODELS]


@pytest.mark.parametrize("made", [penalty, points])
def test_what_a_script_writes_is_made_of_its_numbers(made: ModuleType) -> None:
    numbers = pd.read_csv(made.NUMBERS, dtype={"penalty": str})
    assert marked(made.PAGE, made.MARK) == made.table(numbers)
    page = str(made.PAGE.relative_to(ROOT))
    said = numbers_in(quoted(page, made.MARK))
    assert said
    assert said - {"2", "2019"} <= numbers_in(made.table(numbers))
    assert f"{made.PICTURE.name})" in made.PAGE.read_text(encoding="utf-8")
    assert made.PICTURE.is_file()


def test_the_penaltys_figure_says_which_way_words_went() -> None:
    numbers = pd.read_csv(penalty.NUMBERS, dtype={"penalty": str})
    lower = penalty.finding(numbers)
    assert "words are less alike: their mean cosine" in lower
    by_hand = numbers[(numbers.penalty == "1") & (numbers.curve == "anisotropy/mean_cosine") & (numbers.x > 0)]
    first, second = by_hand.groupby("model").value.mean()
    assert f"is {first:.2f} in place of" in lower
    assert f"bert, {second:.2f} in place of" in lower

    swapped = numbers.assign(penalty=numbers.penalty.replace({"0": "1", "1": "0"}))
    assert "words are more alike: their" in penalty.finding(swapped)
    one = swapped.assign(penalty=numbers.penalty.where(numbers.model == "bert", swapped.penalty))
    assert "words are less alike in bert, more alike in gpt2: their" in penalty.finding(one)
