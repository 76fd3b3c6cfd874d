"""The forms in sums of ctxexp's own metrics and of the baseline; others' metrics have a method `sum_form`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np
from ctxexp_measures.isotropy.spectrum import Spectrum

from ctxexp import Metric
from ctxexp.command import registry
from ctxexp.maths import Moments
from ctxexp_scale.sums import Batch, SumForm, Sums, mean_and_spread

if TYPE_CHECKING:
    from torch import Tensor

MOMENTS = ("rows", "row sum", "second moments", "normalized sum", "rows with direction")


def sum_form(metric: Metric) -> SumForm | None:
    """The metric computed from sums over rows; None for one that needs rows."""
    if own := getattr(metric, "sum_form", None):
        form: SumForm | None = own()
        return form
    for name, make in FORMS.items():
        if type(metric) is registry().find("metric", name).factory:  # a subclass may compute something else
            return make(metric)
    return MomentSums(metric) if isinstance(metric, Spectrum) else None


class WordCosines(SumForm):
    """From the sum of each word's normalized rows, s: (|s|^2 - n) / (n^2 - n)."""

    def word_addends(self, batch: Batch) -> Mapping[str, Tensor]:
        return {"normalized": batch.normalized}

    def scores(self, sums: Sums) -> np.ndarray:
        return np.clip(self._means(sums), -1.0, 1.0)  # clip keeps NaN

    def influence(self, part: Sums, total: Sums) -> np.ndarray:
        """The sum of `mean_cosine_influence` over the part's rows of each word; NaN below 3 rows, as there."""
        n, along = total.n.astype(np.float64), np.vecdot(part.by_word["normalized"], total.by_word["normalized"])
        with np.errstate(invalid="ignore", divide="ignore"):
            influence = (along - part.n) / (n - 1) - part.n * self._means(total)
            return np.where(n > 2, influence * (2 / (n - 2)) * np.sqrt((n - 1) / n), np.nan)

    def _means(self, sums: Sums) -> np.ndarray:
        n, s = sums.n.astype(np.float64), sums.by_word["normalized"]
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(n > 1, (np.vecdot(s, s) - n) / (n * n - n), np.nan)


class SentenceScores(SumForm):
    """From the scores of whole sentences, which a batch holds: their number, their sum, that of their squares."""

    def __init__(self, *, unit_norm: bool) -> None:
        self.unit_norm, self.name = unit_norm, f"intra-sentence{' unit norm' if unit_norm else ''}"

    def addends(self, batch: Batch) -> Mapping[str, Tensor]:
        n, total = batch.lengths, batch.normalized_sums
        mean = total if self.unit_norm else batch.sentence_sums
        length = mean.square().sum(1).sqrt()
        score = ((mean * total).sum(1) / (n * length)).clamp(-1.0, 1.0)
        scale = n if self.unit_norm else (n * batch.by_sentence(batch.norms.square())).sqrt()
        above_rounding = length > 16 * float(np.finfo(np.float32).eps) * scale  # as in the stored form
        is_defined = (n > 1) & above_rounding & score.isfinite()
        score = score.where(is_defined, 0.0)
        counts = {" n": is_defined.sum(), " undefined": (~is_defined).sum()}
        sums = {"": score.sum(), " squared": score.square().sum(), **counts}
        return {f"{self.name}{name}": value.to(n.dtype) for name, value in sums.items()}

    def statistics(self, sums: Sums) -> dict[str, float]:
        n, total, squares, undefined = self._read(sums)
        return {**mean_and_spread(n, total, squares), "undefined": undefined}

    def influence(self, part: Sums, total: Sums) -> float:
        (n, score_sum, *_), (part_n, part_sum, *_) = self._read(total), self._read(part)
        return (part_sum - part_n * score_sum / n) / n if n else float("nan")

    def _read(self, sums: Sums) -> tuple[float, ...]:
        """Sentences with a score, the sum of the scores, that of their squares, sentences without one."""
        return tuple(float(sums.overall[f"{self.name}{name}"]) for name in (" n", "", " squared", " undefined"))


class NormSums(SumForm):
    """From the number of rows, the sum of their lengths and that of the squares."""

    def addends(self, batch: Batch) -> Mapping[str, Tensor]:
        norms = batch.norms
        return {"rows": batch.lengths.sum(), "norms": norms.sum(), "norms squared": norms.square().sum()}

    def statistics(self, sums: Sums) -> dict[str, float]:
        return mean_and_spread(*(float(sums.overall[name]) for name in ("rows", "norms", "norms squared")))


class BaselineSums(SumForm):
    """The expected cosine of random occurrences of whole sentences, each once, from sums: of the mean unit vectors m_s
    (or of unit vectors), of |m_s|^2, and of how many there are."""

    def __init__(self, over: str) -> None:
        self.over, self.name = over, f"level by {over}"

    def addends(self, batch: Batch) -> Mapping[str, Tensor]:
        u = batch.normalized.nan_to_num(0.0)
        if self.over == "sentence":
            n = batch.by_sentence(batch.has_direction)
            u = batch.by_sentence(u) / n.clamp(min=1.0)[:, None]
            own, size = u.square().sum(), n.clamp(max=1.0).sum()
        else:
            own = size = batch.has_direction.sum()
        return {self.name: u.sum(0), f"{self.name} own": own, f"{self.name} n": size}

    def statistics(self, sums: Sums) -> dict[str, float]:
        total, own, n = self._read(sums)
        return {"level": float((total @ total - own) / (n * (n - 1))) if n > 1 else float("nan"), "n": n}

    def influence(self, part: Sums, total: Sums) -> float:
        (s, _, n), (part_s, own, size) = self._read(total), self._read(part)
        value = self.statistics(total)["level"]
        return float(2 * (part_s @ s - own - size * (n - 1) * value) / (n * (n - 1))) if n > 1 else float("nan")

    def _read(self, sums: Sums) -> tuple[np.ndarray, float, float]:
        overall = sums.overall
        return overall[self.name], float(overall[f"{self.name} own"]), float(overall[f"{self.name} n"])


class MomentSums(SumForm):
    """From the sum of the rows, their second moments about the origin (d, d), and the sum of the normalized rows;
    rounding errors of a scatter are 1e-16 of those moments."""

    def __init__(self, metric: Spectrum) -> None:
        self.metric = metric

    @property
    def key(self) -> object:
        return type(self.metric).__name__, getattr(self.metric, "centred", True)

    def addends(self, batch: Batch) -> Mapping[str, Tensor]:
        x, u = batch.x, batch.normalized.nan_to_num(0.0)
        sums = (batch.lengths.sum(), x.sum(0), x.T @ x, u.sum(0), batch.has_direction.sum())
        return dict(zip(MOMENTS, sums, strict=True))

    def statistics(self, sums: Sums) -> dict[str, float]:
        n, total, outer, normalized, n_directed = (sums.overall[name] for name in MOMENTS)
        metric, moments = copy(self.metric), Moments()
        moments.n, moments.n_directed, moments.ones = int(n), int(n_directed), float(n_directed)
        moments.mean, moments.normalized_sum = total / max(n, 1), normalized
        moments.scatter = outer - n * np.outer(moments.mean, moments.mean)
        metric.moments = moments
        return metric.compute()


FORMS: dict[str, Callable[[Any], SumForm]] = {  # of ctxexp's own metrics, by name
    "anisotropy": lambda metric: SumForm(),
    "intra_sentence_similarity": lambda metric: SentenceScores(unit_norm=metric.unit_norm),
    "self_similarity": lambda metric: WordCosines(),
    "word_norm": lambda metric: NormSums(),
}
