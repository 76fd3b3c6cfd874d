"""QNLI (GLUE), its file as it is distributed, and whether the sentence that answers a question is the most similar."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

import numpy as np
from annotated_types import Ge

from ctxexp import Corpus, Estimate, Pair, Pairs, Reading, ScoredPairs, Sentence, SimilarityMetric
from ctxexp.datasets import read_table, user_path
from ctxexp.datasets import tokenizer as make_tokenizer
from ctxexp.errors import DataError, MetricError
from ctxexp.maths import midranks
from ctxexp_measures.senses.corpora.public import PublicArchive


def auc(score: np.ndarray, positive: np.ndarray) -> float:
    """Area under the ROC curve, in [0, 1]: the chance that a positive outscores a negative, ties counting half.

    `score` (n,), `positive` (n,) bool. NaN if there are no positives or no negatives.
    """
    return float(resampled_auc(score, positive, np.ones((1, len(score))))[0])


def resampled_auc(score: np.ndarray, positive: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The area under the ROC curve in resamples given by counts (c, n): (c,); NaN where a class is missing."""
    positive = np.asarray(positive, bool)
    ups = counts[:, positive]
    n_up = ups.sum(axis=1)
    n_down = counts.sum(axis=1) - n_up
    ranked = (midranks(score, counts)[:, positive] * ups).sum(axis=1) if len(score) else np.zeros(len(counts))
    pairs = np.where(n_up * n_down > 0, n_up * n_down, np.nan)
    return (ranked - n_up * (n_up + 1) / 2) / pairs


HEADER = ("question", "sentence", "label")
# GLUE's archive of 2018 and its digest, which public projects quote beside either address; not fetched by us so far.
SOURCE = PublicArchive(
    "qnli", "https://dl.fbaipublicfiles.com/glue/data/QNLIv2.zip", r"^QNLI/(dev\.tsv)$",
    archive_digest="e634e78627a29adaecd4f955359b22bf5e70f2cbd93b493f2d624138a0c0e5f5",
)  # fmt: skip
GOLD = {"entailment": 1.0, "not_entailment": 0.0}


def qnli(
    *,
    path: str | None = None,
    limit: Annotated[int, Ge(1)] | None = None,
    tokenizer: str = "english",
    lower: bool = False,
) -> Corpus:
    """QNLI: pairs of question and sentence, gold 1 if the sentence holds the answer (entailment), else 0.

    `path` is GLUE's dev.tsv (or train.tsv; plain or .gz), with the columns index, question, sentence, label, or the
    folder that holds dev.tsv; quotes are text. Without one GLUE's archive is downloaded once and checked. `limit` takes
    the first pairs only. GLUE's test.tsv has no labels. Raises ConfigError, DataError naming file and line.

    path: QNLI's dev.tsv as GLUE distributes it (or .gz), or its folder; null: downloaded once and checked
    limit: the first pairs only
    """
    given = user_path(path) if path else SOURCE.fetch()
    inside = (given / "dev.tsv", given / "dev.tsv.gz") if given.is_dir() else ()
    file = next((one for one in inside if one.is_file()), given)
    tokenize = make_tokenizer(tokenizer, lower=lower)
    sentence_of: dict[str, Sentence] = {}
    sentences: list[Sentence] = []
    pairs: list[Pair] = []
    for where, cells in read_table(file, HEADER, "text", ".tsv"):
        question, sentence, label = (cell.strip() for cell in cells)
        if label not in GOLD:
            raise DataError(f"{where}: label {label!r}; expected entailment or not_entailment")
        if limit is not None and len(pairs) == limit:
            break
        pairs.append(Pair(len(sentences), len(sentences) + 1, GOLD[label], "QNLI"))
        for text in (question, sentence):
            if text not in sentence_of:
                sentence_of[text] = tokenize(text)
            sentences.append(sentence_of[text])
    if not pairs:
        raise DataError(f"{file} has no pair: expected a line for each after the header")
    choices = {"file": file.name, "limit": str(limit), "tokenizer": tokenizer, "lower": str(lower).lower()}
    return Corpus("qnli", tuple(sentences), tuple(pairs), choices=choices)


class QNLI(SimilarityMetric):
    """Area under the ROC curve x 100, in [0, 100], of similarity against entailment (Li et al. 2020, section 4.3).

    The chance, in percent, that a sentence which answers its question (gold 1) is more similar to it than one that
    doesn't (gold 0) is to its own; 50 is chance. NaN where all pairs have the same label.

    similarity: cosine, dot, euclidean (negative distance)
    """

    title = "Question against answer"
    reading = Reading(unit="AUC × 100", main="auc")
    definition = "area under the ROC curve of {similarity} against gold 1"

    def columns(self, subset: str, pairs: Pairs) -> Mapping[str, np.ndarray]:
        odd = set(np.unique(pairs.gold).tolist()) - {0.0, 1.0}
        if odd:
            raise MetricError(
                f"gold {min(odd)} in sub-set {subset!r}: expected 0 or 1, whether the second sentence answers the "
                "first; qnli is for dataset=qnli, graded pairs are for metric=sts"
            )
        return {}

    def task_statistics(self, parts: Sequence[ScoredPairs]) -> dict[str, float | Estimate]:
        whole = ScoredPairs.join(parts)
        similarity, gold = whole.of("similarity", "gold")

        def statistics(counts: np.ndarray) -> dict[str, np.ndarray]:
            return {"auc": 100 * resampled_auc(similarity, gold == 1, counts[:, whole.defined])}

        area = self.with_intervals({"auc": 100 * auc(similarity, gold == 1)}, parts, statistics)
        return {**area, "entailed": int((gold == 1).sum())}
