"""The form in sums of each metric that has one, and of the exact baseline; what needs stored rows is refused."""

from __future__ import annotations

from collections.abc import Mapping
from functools import singledispatch

import numpy as np

from ctxexp import Baseline, Control, Metric, Transform
from ctxexp.baselines import Among
from ctxexp.errors import ConfigError, MetricError
from ctxexp.maths.statistics import summary
from ctxexp.metric import RUN
from ctxexp.metrics.contextuality import Anisotropy, IntraSentenceSimilarity, SelfSimilarity, WordNorm
from ctxexp.plugins.registry import build_registry
from ctxexp_scale.one_pass.sums import Addends, Batch, LayerStatistics, SumForm, Sums, mean_and_spread


def form_in_sums(metric: Metric) -> SumForm:
    """The metric's form in sums: that of its method `sum_form()`, else that of its class (`registered_form`).

    Raises MetricError for a metric without one, or where an option, such as random groups, needs rows.
    """
    form: SumForm = metric.sum_form() if hasattr(metric, "sum_form") else registered_form(metric)
    return form


@singledispatch
def registered_form(metric: Metric) -> SumForm:
    """The form in sums of a metric's class; `registered_form.register` adds one for a class that isn't one's own."""
    raise MetricError("no form in sums")


class BaselineSums(SumForm):
    """`ctxexp.measuring.baseline_levels.mean_cosine_level` of whole sentences, each once, from sums: those of
    m_s (or of u), of |m_s|^2 and of S."""

    def __init__(self, over: Among) -> None:
        self.over, self.name = over, f"level by {over}"

    def addends(self, batch: Batch) -> Addends:
        u = batch.normalized.nan_to_num(0.0)
        if self.over == "sentence":
            n = batch.by_sentence(batch.has_direction)
            u = batch.by_sentence(u) / n.clamp(min=1.0)[:, None]
            own, size = u.square().sum(), n.clamp(max=1.0).sum()
        else:
            own = size = batch.has_direction.sum()
        return Addends(overall={self.name: u.sum(0), f"{self.name} own": own, f"{self.name} n": size})

    def statistics(self, sums: Sums) -> LayerStatistics:
        total, own, n = self._read(sums)
        level = float((total @ total - own) / (n * (n - 1))) if n > 1 else float("nan")
        return LayerStatistics({"level": level, "n": n})

    def influence(self, part: Sums, total: Sums) -> float:
        (s, _, n), (part_s, own, size) = self._read(total), self._read(part)
        value = self.statistics(total).statistics["level"]
        return float(2 * (part_s @ s - own - size * (n - 1) * value) / (n * (n - 1))) if n > 1 else float("nan")

    def _read(self, sums: Sums) -> tuple[np.ndarray, float, float]:
        overall = sums.overall
        return overall[self.name], float(overall[f"{self.name} own"]), float(overall[f"{self.name} n"])


class BaselineAlone(SumForm):
    """Contributes nothing of its own: `BaselineSums` already sums the baseline, and a random sample needs rows."""

    def addends(self, batch: Batch) -> Addends:
        return Addends()

    def statistics(self, sums: Sums) -> LayerStatistics:
        return LayerStatistics({})


class NormSums(SumForm):
    """From the number of rows, the sum of their lengths and that of the squares."""

    def addends(self, batch: Batch) -> Addends:
        norms = batch.norms
        return Addends(
            overall={"rows": batch.lengths.sum(), "norms": norms.sum(), "norms squared": norms.square().sum()}
        )

    def statistics(self, sums: Sums) -> LayerStatistics:
        return LayerStatistics(
            mean_and_spread(*(float(sums.overall[name]) for name in ("rows", "norms", "norms squared")))
        )


class WordCosines(SumForm):
    """From the sum of each word's normalized rows, s: (|s|^2 - n) / (n^2 - n)."""

    def addends(self, batch: Batch) -> Addends:
        return Addends(by_word={"normalized": batch.normalized})

    def statistics(self, sums: Sums) -> LayerStatistics:
        scores = np.clip(self._scores(sums), -1.0, 1.0)  # clip keeps NaN
        is_defined = np.isfinite(scores)
        undefined = float(np.count_nonzero(~is_defined))
        return LayerStatistics({**summary(scores[is_defined]), "undefined": undefined}, scores)

    def influence(self, part: Sums, total: Sums) -> np.ndarray:
        """The sum of `of_mean_cosine` over the part's rows of each word; NaN below 3 rows, as there."""
        n, along = total.n.astype(np.float64), np.vecdot(part.by_word["normalized"], total.by_word["normalized"])
        with np.errstate(invalid="ignore", divide="ignore"):
            influence = (along - part.n) / (n - 1) - part.n * self._scores(total)
            result: np.ndarray = np.where(n > 2, influence * (2 / (n - 2)) * np.sqrt((n - 1) / n), np.nan)
        return result

    def _scores(self, sums: Sums) -> np.ndarray:
        n, s = sums.n.astype(np.float64), sums.by_word["normalized"]
        with np.errstate(invalid="ignore", divide="ignore"):
            result: np.ndarray = np.where(n > 1, (np.vecdot(s, s) - n) / (n * n - n), np.nan)
        return result


class SentenceScores(SumForm):
    """From the scores of whole sentences, which a batch holds: their number, their sum, that of their squares."""

    def __init__(self, metric: IntraSentenceSimilarity) -> None:
        self.unit_norm = metric.unit_norm
        self.name = f"intra-sentence{' unit norm' if metric.unit_norm else ''}"

    def addends(self, batch: Batch) -> Addends:
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
        return Addends(overall={f"{self.name}{name}": value.to(n.dtype) for name, value in sums.items()})

    def statistics(self, sums: Sums) -> LayerStatistics:
        n, total, squares, undefined = self._read(sums)
        return LayerStatistics({**mean_and_spread(n, total, squares), "undefined": undefined})

    def influence(self, part: Sums, total: Sums) -> float:
        (n, score_sum, *_), (part_n, part_sum, *_) = self._read(total), self._read(part)
        return (part_sum - part_n * score_sum / n) / n if n else float("nan")

    def _read(self, sums: Sums) -> tuple[float, ...]:
        """Sentences with a score, the sum of the scores, that of their squares, sentences without one."""
        return tuple(float(sums.overall[f"{self.name}{name}"]) for name in (" n", "", " squared", " undefined"))


registered_form.register(Anisotropy, lambda metric: BaselineAlone())
registered_form.register(WordNorm, lambda metric: NormSums())
registered_form.register(SelfSimilarity, lambda metric: WordCosines())
registered_form.register(IntraSentenceSimilarity, SentenceScores)


def why_not(metric: Metric) -> str:
    """The reason why a metric can't be measured in one pass; empty if it can."""
    try:
        form_in_sums(metric)
    except MetricError as error:
        return str(error)
    if metric.sample is not None:
        return f"sample={metric.sample} draws groups"
    if metric.baselines != (RUN,) and metric.cosine_statistic:
        return f"baselines=[{','.join(metric.baselines)}] measures random groups"
    has_drawn = type(metric).baseline_value is not Metric.baseline_value and not metric.cosine_statistic
    return "its chance level is drawn" if has_drawn else ""


def check_parts(metrics: Mapping[str, Metric], baseline: Baseline, transform: Transform, control: Control) -> None:
    """Raise ConfigError, before any text or model is loaded, for parts that need stored rows."""
    why = [f"metric {label} ({reason})" for label, metric in metrics.items() if (reason := why_not(metric))]
    if not baseline.expectation and any(metric.cosine_statistic for metric in metrics.values()):
        why.append(f"baseline {baseline.name} (random groups; baseline=exact needs none)")
    if not transform.identity:
        why.append(f"transform {type(transform).__name__} (transform=none needs none)")
    if control.needs_rows:
        why.append(f"control {control.name} (it judges rows)")
    if why:
        own = build_registry(installed=False)
        factories = {name: own.find("metric", name).factory for name in own.names("metric")}
        classes = tuple(kind for kind in registered_form.registry if kind is not object)
        names = [name for name, each in factories.items() if isinstance(each, type) and issubclass(each, classes)]
        raise ConfigError(
            f"one_pass.shards stores no rows, which are needed by {', '.join(why)}: store them, or bounded ones with "
            "words.max_contexts=256 in its place; of ctxexp's own metrics one pass does for " + ", ".join(names)
        )
