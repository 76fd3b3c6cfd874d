"""`ctxexp split-words`: the study of several models, its table and figure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ctxexp import Sentence
from ctxexp.command import Experiment, configured, registry, show
from ctxexp.errors import ConfigError
from ctxexp.report import PALETTE, Document, Ink, Table, add_captions, empty_figure
from ctxexp_lab.splits.study import find_words, recovered_shares, vectors

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

REPLICATES = 4000
WITH_WEIGHTS = ("bert", "gpt2")  # models that the group `weights` is of


def encoders(models: Sequence[str], *, untrained: bool) -> dict[str, Any]:
    """The transformers of these names by label, each followed by its untrained twin where it has one."""
    by_model = {}
    for name in models:
        has_twin = untrained and name.partition(" ")[0] in WITH_WEIGHTS
        for choice in ([], ["model.weights=untrained"]) if has_twin else ([],):
            encoder = Experiment(configured(name, options=choice)).encoder
            if not hasattr(encoder, "hidden_states"):
                raise ConfigError(f"split-words {name}: expected a transformer, which reads words as pieces")
            by_model[f"{name} (untrained)" if choice else name] = encoder
    return by_model


def split_words_table(
    encoders_by_label: dict[str, Any], sentences: Sequence[Sentence], *, most: int, seed: int
) -> pd.DataFrame:
    """A row for each model, layer and condition: share recovered, in [0, 1], its interval, words, chance (1/words)."""
    import pandas as pd

    rows = []
    for label, encoder in encoders_by_label.items():
        words = find_words(encoder, sentences, most, seed)
        show(f"{label}: {len(words)} words, such as {', '.join(word.word for word in words[:4])}")
        shares = recovered_shares(vectors(encoder, words, seed), replicates=REPLICATES, seed=seed)
        rows += [{"model": label, **row, "words": len(words), "chance": 1 / len(words)} for row in shares]
    return pd.DataFrame(rows)


def split_words(
    *models: str,
    words: int = 200,
    untrained: bool = True,
    seed: int = 0,
    out: Path = Path("split_words"),
) -> Document:
    """Find the layer in which a word that is split in two pieces meets the same word in one piece, after Kaplan et al.
    2025, beside pieces of other words.

    models: transformers, quoted with their words: bert, gpt2, "smollm2 model.prefix=bos" ...
    words: of each model at most so many, from the embedded sentences
    untrained: measure the untrained twins of bert and gpt2 too
    seed: of words, splits and resamples
    out: a folder for split_words.csv and the figure
    example: ctxexp split-words gpt2 bert
    """
    if not models:
        raise ConfigError("split-words needs a model: ctxexp split-words gpt2 bert")
    numbers = split_words_table(
        encoders(models, untrained=untrained),
        registry().find("dataset", "polysemy").factory().sentences,
        most=words,
        seed=seed,
    )
    said = [sentence(str(label), of_model) for label, of_model in numbers.groupby("model", sort=False)]
    return Document(said, {"split_words": Table("Split words", numbers)}, {"split_words": figure(numbers)})


LINES = {
    "whole": (PALETTE[3], "the word in one piece"),
    "split": (PALETTE[0], "split in two pieces"),
    "alone": (PALETTE[4], "its two pieces at that place without the sentence"),
    "mismatched": (PALETTE[1], "its last piece behind another word's first"),
}
FACTS = (
    "share of words whose last piece is nearest to the same word in one piece, in another sentence and the same layer, "
    "by cosine after centring",
    "bands: 95% over words",
    "dotted: chance, one word in all",
)


def figure(numbers: pd.DataFrame) -> Figure:
    """Figure of the table's shares by layer."""
    labels = list(dict.fromkeys(numbers.model))
    canvas = empty_figure(max(6.4, 2.6 * len(labels) + 0.8), 2.7)
    grid = canvas.subplots(1, len(labels), squeeze=False, sharey=True)[0]
    handles: list[Line2D] = []
    for axes, label in zip(grid, labels, strict=True):
        rows = numbers[numbers.model == label]
        axes.set_title(
            f"{label}, {rows.words.iloc[0]} words", loc="left", fontsize=10, color=Ink.TEXT, parse_math=False
        )
        handles = []
        for name, (colour, _) in LINES.items():
            line = rows[rows.condition == name]
            handles += axes.plot(line.layer, line.share, color=colour, linewidth=1.8)
            axes.fill_between(line.layer, line.low, line.high, color=colour, alpha=0.18, linewidth=0)
        axes.axhline(rows.chance.iloc[0], color=Ink.FAINT, linewidth=1, linestyle=":")
        axes.set_ylim(0, 1)
        axes.set_xlabel("layer (0 = input layer)", fontsize=9)
        axes.tick_params(labelsize=8.5)
        axes.spines[["top", "right"]].set_visible(False)
    grid[0].set_ylabel("share recovered", fontsize=9)
    names = [name for _, name in LINES.values()]
    finding = " ".join(sentence(label, numbers[numbers.model == label]) for label in labels if "untrained" not in label)
    add_captions(
        canvas, "In which layer does a split word meet itself in one piece?", FACTS, handles, names, [], finding=finding
    )
    return canvas


def sentence(label: str, rows: pd.DataFrame) -> str:
    """The layer in which most split words are recovered, beside mismatched and whole words; or that none is known."""
    by_layer = rows.pivot(index="layer", columns="condition", values="share")
    gain = rows[rows.condition == "gain"].set_index("layer")
    certain = gain[gain.low > 0]
    if certain.empty:
        return f"{label}: in no layer are split words recovered more often than mismatched ones for certain."
    best = int(by_layer.split.loc[certain.index].idxmax())
    at, split = by_layer.loc[best], rows[(rows.condition == "split") & (rows.layer == best)].iloc[0]
    return (
        f"{label}: most split words, {split.share:.0%} [{100 * split.low:.0f}, {100 * split.high:.0f}], are nearest to "
        f"themselves in layer {best}, where {at.mismatched:.0%} are behind another word's first piece, "
        f"{at.alone:.0%} without the sentence and {at.whole:.0%} in one piece."
    )
