"""`ctxexp split-words`: words in one piece, split in two, and behind another word's first piece: which of them a layer
takes for the word.

After Kaplan et al. 2025 (*From Tokens to Words: On the Inner Lexicon of LLMs*, ICLR): a word that a tokenizer knows as
one piece is fed as two, and its last piece is looked for among words in one piece. Their random splits are kept; their
readout (logit lens, Patchscopes) is replaced by the nearest of the words' vectors of the same layer in other sentences.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ctxexp import Sentence
from ctxexp.command import Experiment, configured, registry, show
from ctxexp.errors import ConfigError, DataError
from ctxexp.report import PALETTE, Document, Ink, Table, add_captions, empty_figure

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from tokenizers import Tokenizer

MARKERS = "Ġ▁"  # of a word's start, in vocabularies; they belong to its first part
SHORTEST = 4  # letters of a word that is split
CONDITIONS = ("whole", "split", "alone", "mismatched")
REPLICATES = 4000
WITH_WEIGHTS = ("bert", "gpt2")  # models that the group `weights` is of
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


@dataclass(frozen=True)
class Occurrence:
    """A piece at its place (`at`) among the ids of a sentence, (length,) int32."""

    ids: np.ndarray
    at: int


@dataclass(frozen=True)
class SplitWord:
    """A word in one piece, in two sentences, and two pieces that spell it."""

    word: str
    one: Occurrence
    other: Occurrence
    parts: tuple[int, int]


def find_words(encoder: Any, sentences: Sequence[Sentence], most: int, seed: int) -> list[SplitWord]:
    """At most so many words of one piece that stand in two sentences and can be split in two pieces, drawn by seed.

    Where a word can be split is drawn from the places whose two parts are in the vocabulary. Raises DataError for fewer
    than ten words.
    """
    rng = np.random.default_rng(seed)
    at: dict[int, list[Occurrence]] = {}
    words: dict[int, str] = {}
    for read in encoder.read_pieces(sentences):
        if encoder.window is not None and len(read.ids) >= encoder.window:
            continue
        for word, place in _of_one_piece(read):
            piece = int(read.ids[place])
            of_piece = at.setdefault(piece, [])
            if words.setdefault(piece, word) == word and (not of_piece or of_piece[-1].ids is not read.ids):
                of_piece.append(Occurrence(read.ids, place))
    several = sorted(piece for piece, places in at.items() if len(places) > 1)
    entries: list[SplitWord] = []
    for piece in rng.permutation(several).tolist():
        parts = splits(encoder.tokenizer, piece)
        if parts and len(entries) < most:
            one, other = (at[piece][i] for i in rng.choice(len(at[piece]), 2, replace=False))
            entries.append(SplitWord(words[piece], one, other, parts[rng.integers(len(parts))]))
    if len(entries) < 10:
        raise DataError(
            f"{encoder.title}: {len(entries)} words of one piece and {SHORTEST} letters or more stand in two sentences "
            "and can be split in two pieces; expected 10 or more"
        )
    return entries


def _of_one_piece(read: Any) -> list[tuple[str, int]]:
    """The words of a sentence that are one piece, with its place among the ids."""
    first = np.cumsum(read.counts) - read.counts
    return [
        (unit, int(read.at[i]))
        for unit, i, n in zip(read.units, first.tolist(), read.counts.tolist(), strict=True)
        if n == 1 and unit.isalpha() and unit.isascii() and len(unit) >= SHORTEST
    ]


def splits(tokenizer: Tokenizer, piece: int) -> list[tuple[int, int]]:
    """All pairs of the vocabulary's pieces that spell a piece one after the other."""
    text = tokenizer.id_to_token(piece) or ""
    going_on = getattr(tokenizer.model, "continuing_subword_prefix", None) or ""
    start = len(text) - len(text.lstrip(MARKERS))
    pairs = [
        (tokenizer.token_to_id(text[:i]), tokenizer.token_to_id(going_on + text[i:]))
        for i in range(start + 1, len(text))
    ]
    return [(first, last) for first, last in pairs if first is not None and last is not None]


def mismatched_parts(words: Sequence[SplitWord], seed: int) -> list[tuple[int, int]]:
    """Each word's last piece behind another word's first piece, which isn't its own; every first piece is used once, as
    far as that goes."""
    rng = np.random.default_rng(seed)
    firsts = [word.parts[0] for word in words]
    order = rng.permutation(len(words)).tolist()
    shifted = dict(zip(order, order[1:] + order[:1], strict=True))
    pairs = []
    for i, word in enumerate(words):
        j = shifted[i]
        while firsts[j] == word.parts[0]:
            j = shifted[j]
            if j == i:
                raise ConfigError("all words are split behind the same first piece; give more words")
        pairs.append((firsts[j], word.parts[1]))
    return pairs


def vectors(encoder: Any, words: Sequence[SplitWord], seed: int) -> dict[str, np.ndarray]:
    """(layers, words, dim) float32 of each condition's last piece in a word's one sentence (`alone`: at its place
    there, without the sentence), and (`other`) of the word in one piece in its other sentence."""
    import torch

    def layers(ids: np.ndarray, at: int, place: int = 0) -> np.ndarray:
        hidden = encoder.hidden_states(ids[None], np.array([place]) if place else None)
        return np.stack([layer[at].float().cpu().numpy() for layer in hidden])

    def replaced(word: SplitWord, parts: tuple[int, int]) -> np.ndarray:
        ids, at = word.one.ids, word.one.at
        return layers(np.concatenate([ids[:at], np.array(parts, ids.dtype), ids[at + 1 :]]), at + 1)

    false_parts = mismatched_parts(words, seed)
    with torch.inference_mode():
        return {
            "other": np.stack([layers(word.other.ids, word.other.at) for word in words], axis=1),
            "whole": np.stack([layers(word.one.ids, word.one.at) for word in words], axis=1),
            "split": np.stack([replaced(word, word.parts) for word in words], axis=1),
            "alone": np.stack([layers(np.array(word.parts), 1, word.one.at) for word in words], axis=1),
            "mismatched": np.stack([replaced(*pair) for pair in zip(words, false_parts, strict=True)], axis=1),
        }


def is_recovered(x: np.ndarray, candidates: np.ndarray) -> np.ndarray:
    """Whether each row's nearest candidate by cosine is the one of its own number, (n,) bool; both (n, d).

    Each cloud is centred first, so that what all words share, and what all split words share, counts for nothing.
    Chance is 1/n. Where two candidates are equally near, a row isn't recovered.
    """

    def normalized(rows: np.ndarray) -> np.ndarray:
        centred = rows.astype(np.float64) - rows.mean(axis=0, dtype=np.float64)
        return centred / np.maximum(np.linalg.norm(centred, axis=1, keepdims=True), 1e-12)

    cosines = normalized(x) @ normalized(candidates).T
    own = np.diag(cosines).copy()
    np.fill_diagonal(cosines, -np.inf)
    return own > cosines.max(axis=1)


def recovered_shares(by_condition: Mapping[str, np.ndarray], *, replicates: int, seed: int) -> list[dict[str, object]]:
    """A row for each layer and condition: the share of words recovered, with its 95% bootstrap interval over words; and
    the `gain`, split less mismatched, whose intervals hold for all layers at once (Bonferroni)."""
    rng = np.random.default_rng(seed)
    n_layers, n = by_condition["other"].shape[:2]
    draws = rng.multinomial(n, np.full(n, 1 / n), size=replicates) / n  # (replicates, n)
    rows: list[dict[str, object]] = []
    for layer, candidates in enumerate(by_condition["other"]):
        hits = {name: is_recovered(by_condition[name][layer], candidates).astype(float) for name in CONDITIONS}
        hits["gain"] = hits["split"] - hits["mismatched"]
        for name, values in hits.items():
            tail = 0.025 / (n_layers if name == "gain" else 1)
            low, high = np.quantile(draws @ values, [tail, 1 - tail])
            rows.append({"layer": layer, "condition": name, "share": values.mean(), "low": low, "high": high})
    return rows


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
