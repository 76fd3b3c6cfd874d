"""Readers of what authors released: from a folder to evidence that gives verdicts, by the name that a paper's file has.

*Ethayarajh 2019*: per-word files, a row a word, a column a layer, rounded to three decimals; beside them the per-layer
figures. Their `analyze.py` (github.com/kawine/contextual, commit c10c992 and after) draws 1,000 sentences, a word of
each, and 1,000 pairs of these words with replacement: the baseline is the pairs' mean cosine. Cosines lie between -1
and 1, so that values of mean m have a variance of 1 - m^2 at the most (Bhatia & Davis 2000), and the released figures
an error that is known without the model. Self-similarity is by word: its interval is over words.

*Skean et al. 2025*: scores of 32 MTEB tasks by layer, in five families, MTEB's types. For Pythia their wrapper sets the
model's number of layers to the one evaluated, so that "layer k" is the model's final norm applied to layer k.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from ctxexp_compare.layer_choice.families import families_by_name
from ctxexp_compare.layer_choice.score_file import RELEASED

from ctxexp.command import registry
from ctxexp.datasets import read_table
from ctxexp.errors import DataError
from ctxexp.report import published_curves
from ctxexp.results import Key
from ctxexp_papers.claims.evidence import Inputs, Member, Source
from ctxexp_papers.claims.kinds import Test, key_of
from ctxexp_papers.claims.statistics import LayerCurve, Z
from ctxexp_papers.monosemy import count_senses, describe_words

if TYPE_CHECKING:
    import pandas as pd

DRAWS, PAIRED, ROUNDING = 1000, 3.0, 0.0005
"""Of Ethayarajh's figures: sentences, words and pairs; times the variance of a cosine over DRAWS that a mean over pairs
of drawn words has at the most (2 by the words, of which each is in many pairs, Hoeffding 1948; 1 by the pairs)."""
MTEB = {
    **{f"pythia-{size}": ("Pythia", size, "main") for size in ("14m", "70m", "160m", "410m")},
    "mamba-370m": ("mamba", "370m", "main"),
    "llm2vec-8b": ("LLM2Vec-mntp-unsup-simcse", "8B", "main"),
}
"""Models with both the last layer and the layers between on all TASKS: family, size, revision."""
TWINS, TASKS = {"pythia-410m": ("Pythia", "410m", "step1")}, 32


def mteb_by_layer(inputs: Inputs, paper: str, tests: Sequence[Test]) -> list[Source]:
    """Scores in points, (tasks, layers) a model."""
    path = _first(folder / "mteb_by_layer.csv.xz" for folder in inputs.folders(paper))
    if path is None:
        return []
    import pandas as pd

    cells = [cells for _, cells in read_table(path, RELEASED)]
    rows = pd.DataFrame(cells, columns=[*RELEASED]).astype({"layer": int, "main_score": float})
    members = []
    for model, trained in MTEB.items():
        curves = {}
        for test in tests:
            which = TWINS.get(model) if test.get("twin") else trained
            if which is None:
                continue
            table = scores(rows, *which, tuple(test["subsets"]))
            if len(table) == TASKS and table.shape[1] > 2:
                families = families_by_name([str(task) for task in table.index])
                layers = [int(n) for n in table.columns]
                curves[key_of(test)] = LayerCurve.of_samples(table.to_numpy() * 100.0, layers, families)
        members.append(Member(model, curves))
    command = f"python -m ctxexp claims paper={paper} released=<folder>"
    return [Source("protocol", "the authors' released MTEB results by layer", members, command=command)]


def scores(rows: pd.DataFrame, family: str, size: str, revision: str, subsets: tuple[str, ...]) -> pd.DataFrame:
    """Main scores on the test sets, tasks by layers; a task's subsets averaged; layers without all tasks left out."""
    wanted = (rows["family"] == family) & (rows["size"] == size) & (rows["revision"] == revision)
    wanted &= (rows["split"] == "test") & (rows["subset"].isin(subsets) if subsets else True)
    table = rows[wanted].groupby(["task", "layer"])["main_score"].mean().unstack()
    return table.loc[:, table.notna().all()]


def kawine_contextual(inputs: Inputs, paper: str, tests: Sequence[Test]) -> list[Source]:
    """The curves of the three models, and with the folders SEMCOR and STS in the environment the properties of words
    that are in them: their number of senses, and the variety of their contexts in the paper's own text."""
    models = ("elmo", "bert", "gpt2")
    folder = next((f for f in inputs.folders(paper) if any(_first(_word_files(f, m)) for m in models)), None)
    if folder is None:
        return []
    tables = {model: _word_table(folder, model) for model in models}
    members = [Member(model, _curves(model, table, tests)) for model, table in tables.items()]
    command = f"python -m ctxexp claims paper={paper} released=<clone of github.com/kawine/contextual>"
    found = [Source("protocol", "the authors' released per-word files and per-layer figures", members, command=command)]
    semcor, sts = os.environ.get("SEMCOR"), os.environ.get("STS")
    if semcor and sts:
        senses = count_senses(registry().find("dataset", "semcor").factory(path=semcor))
        text = registry().find("dataset", "sts_2012_2016").factory(path=sts)
        sentences = [sentence.words for sentence in text.sentences]
        words = []
        for model, table in tables.items():
            described = describe_words(sentences, set(table.index)).rename(columns={"contexts": "frequency"})
            described["senses"] = [senses.get(word.casefold(), np.nan) for word in described.index]
            hidden = [name for name in table if name != "layer_0"]
            own = described.join(table[hidden].mean(axis=1).rename("value"))
            words.append(Member(model, {}, {"self_similarity/raw": own}))
        command = f"SEMCOR=<folder of semcor> STS=<folder of STS2012-test ...> {command}"
        found.append(
            Source("protocol", "the authors' released per-word files, senses of SemCor", words, command=command)
        )
    return found


def _curves(model: str, table: pd.DataFrame, tests: Sequence[Test]) -> dict[str, LayerCurve]:
    """Self-similarity with its interval over words, anisotropy with a bound on what its draws can have erred by."""
    layers = tuple(int(str(name).removeprefix("layer_")) for name in table)
    values = table.to_numpy(np.float64)
    mean, n = np.nanmean(values, axis=0), np.isfinite(values).sum(axis=0)
    half = Z * np.nanstd(values, axis=0, ddof=1) / np.sqrt(n) + ROUNDING
    level = published_curves(model)[Key("anisotropy", "mean_cosine")][list(layers)]
    low, high = bounded_mean(level, PAIRED)
    room = np.maximum(1 - np.array([level, high, low]), ROUNDING)
    raw = (mean, mean - half, mean + half)
    spread = np.hypot(half, high - level), np.hypot(half, level - low)
    by_metric = {
        "anisotropy/mean_cosine": (level, low, high),
        "self_similarity/raw": raw,
        "self_similarity/adjusted": (mean - level, mean - level - spread[0], mean - level + spread[1]),
        "self_similarity/share_of_room": (  # from the worst ends of both to the best
            (mean - level) / room[0], (raw[1] - high) / room[1], (np.minimum(raw[2], 1.0) - low) / room[2]
        ),
    }  # fmt: skip
    every = {key_of(test): test["metric"] for test in tests}
    return {
        key: LayerCurve(*by_metric[name], layers, n=float(n[-1])) for key, name in every.items() if name in by_metric
    }


def bounded_mean(value: np.ndarray, times: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """The ends of an interval of the mean of DRAWS values between -1 and 1 that holds in 95% of cases whatever they
    are, but for a mean's being nearly normal: all means m with |value - m| <= z sqrt(times (1 - m^2) / DRAWS).

    Args:
        value: (layers,) means.
        times: by how much their variance exceeds that of independent values.
    """
    k = times * Z**2 / DRAWS
    half = np.sqrt(np.maximum(k * (1 + k - value**2), 0.0)) / (1 + k)
    return value / (1 + k) - half - ROUNDING, value / (1 + k) + half + ROUNDING


def _word_table(folder: Path, model: str) -> pd.DataFrame:
    """Words by layers; raises DataError for a file that isn't there or isn't one of theirs."""
    import pandas as pd

    path = _first(_word_files(folder, model))
    if path is None:
        raise DataError(
            f"no {model}/self_similarity.csv in {folder} (released=): expected a clone of github.com/kawine/contextual"
        )
    table = pd.DataFrame([row for _, row in read_table(path)])
    if list(table.columns[:1]) != ["word"] or not all(str(c).startswith("layer_") for c in table.columns[1:]):
        raise DataError(f"{path}: expected columns word, layer_0 or layer_1, ..., got {', '.join(table.columns[:3])}")
    return table.set_index("word").replace("", np.nan).astype(np.float64)


def _word_files(folder: Path, model: str) -> list[Path]:
    """Where a file may lie: as the authors' repository has it, or in one folder."""
    name = "self_similarity.csv"
    return [folder / model / name, folder / f"{model}_{name}", folder / f"{model}_{name}.xz"]


def _first(paths: object) -> Path | None:
    return next((path for path in paths if path.exists()), None)  # type: ignore[attr-defined]


READERS: dict[str, Callable[[Inputs, str, Sequence[Test]], list[Source]]] = {
    "mteb_by_layer": mteb_by_layer,
    "kawine_contextual": kawine_contextual,
}
