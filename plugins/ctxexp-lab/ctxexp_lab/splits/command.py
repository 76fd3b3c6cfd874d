"""`ctxexp split-words`: the study of several models, its table and figure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ctxexp import Sentence
from ctxexp.command import Built, configured, registry, show
from ctxexp.errors import ConfigError
from ctxexp.report import Document, Table
from ctxexp_lab.splits.study import find_words, recovered_shares, vectors

if TYPE_CHECKING:
    import pandas as pd

REPLICATES = 4000
WITH_WEIGHTS = ("bert", "gpt2")  # models that the group `weights` is of


def encoders(models: Sequence[str], *, untrained: bool, prefix: str) -> dict[str, Any]:
    """The transformers of these names by label, each followed by its untrained twin where it has one."""
    by_model = {}
    for name in models:
        twins: list[dict[str, object]] = (
            [{}, {"model.weights": "untrained"}] if untrained and name in WITH_WEIGHTS else [{}]
        )
        for choice in twins:
            start = {} if prefix == "as_tokenizer" else {"model.prefix": prefix}
            encoder = Built(configured(name, options={**start, **choice})).encoder
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
    prefix: str = "as_tokenizer",
    seed: int = 0,
    out: Path = Path("split_words"),
) -> Document:
    """Find the layer in which a word that is split in two pieces meets the same word in one piece, after Kaplan et al.
    2025, beside pieces of other words.

    models: names of transformers: bert, gpt2, smollm2 ...
    words: of each model at most so many, from the embedded sentences
    untrained: measure the untrained twins of bert and gpt2 too
    prefix: stands before each text: as_tokenizer, none, bos, or a text
    seed: of words, splits and resamples
    out: a folder for split_words.csv and the figure
    example: ctxexp split-words gpt2 bert
    """
    from ctxexp_lab.splits.figure import figure, sentence

    if not models:
        raise ConfigError("split-words needs a model: ctxexp split-words gpt2 bert")
    numbers = split_words_table(
        encoders(models, untrained=untrained, prefix=prefix),
        registry().find("dataset", "polysemy").factory().sentences,
        most=words,
        seed=seed,
    )
    said = [sentence(str(label), of_model) for label, of_model in numbers.groupby("model", sort=False)]
    return Document(said, {"split_words": Table("Split words", numbers)}, {"split_words": figure(numbers)})
