"""The front number: how contextual words are in a layer, and what its variants say."""

from __future__ import annotations

from functools import cached_property
from itertools import chain, pairwise

import numpy as np

from ctxexp.errors import MetricError
from ctxexp.groups import Block, Group
from ctxexp.maths.contextuality import Comparison, Uses, strata
from ctxexp.maths.loudness import CUT, LayerScale, cut_factors, scaled_by_dimension
from ctxexp.maths.resampling import Curve, Resamples
from ctxexp.metrics import Estimate, Metric, Reading
from ctxexp.occurrences import Text

CUTS = {"no_cut": 1.0, "no_loud": 0.0}  # of the variance that a direction may hold; 0: it goes
VARIANTS = (*CUTS, "by_dimension", "all_places", "no_first", "no_near_duplicates")
ALIKE = 0.5  # of the shorter sentence's runs of three words, from which two sentences are near-duplicates
PAIRS = 10  # of uses that a word needs for a number of its own
MANY = 100  # sentences that a run of three words may stand in to tell them


class Contextuality(Metric):
    """How unlike two uses of a word are: 0 where context changes nothing, 1 where they are as unlike as two different
    words of like frequency. It may exceed 1.

    Rows are taken about the layer's mean, directions that hold more than 5% of the variance are scaled down to that,
    and rows are brought to norm 1. Distance is 1 - cosine. Two uses of a form (one spelling, the same pieces) at like
    places (0 to 15 singly, then four strata an octave) in different documents are compared, unless they stand between
    the same two words. What different words say of how two places differ is taken off their distance; the mean over
    pairs is divided by the mean distance of different words at these places. Forms weigh in each band of frequency as
    the run's mix says, strata by the occurrences there; the value is the mean over the bands.

    Beside it stand its variants, `lowest` to `highest`: no cut (`no_cut`), loud directions left out (`no_loud`), each
    dimension at the same scale (`by_dimension`), uses at any two places (`all_places`), without the first words of
    sentences (`no_first`) and, where there are any, without near-duplicates of sentences (`no_near_duplicates`).
    `loudest` is the share of the variance that one direction holds before the cut. Noise can't be told from context.
    """

    over = "text"
    title = "Contextuality"
    reading = Reading(
        unit="contextuality",
        subject="words",
        lower="less contextual",
        higher="more contextual",
        main="raw",
    )
    definition = "how unlike two uses of a word are, over how unlike two different words of like frequency are"
    invariances = frozenset({"rotation", "scale", "shift"})

    def __init__(self) -> None:
        self._text: Text | None = None
        self._statistics: dict[str, float | Estimate] = {"raw": float("nan")}
        self._words: list[dict[str, object]] = []

    def bind_text(self, text: Text) -> None:
        self._text = text

    def update(self, group: Group) -> None:
        raise MetricError("contextuality: rows alone don't say which words they are; measure a corpus")

    def update_block(self, block: Block) -> None:
        if self._text is None or block.rows is None:
            return super().update_block(block)
        if "contextuality" not in self._text.derived:
            self._text.derived["contextuality"] = Design(self._text)
        design: Design = self._text.derived["contextuality"]  # type: ignore[assignment]
        if len(design.rows):
            self._statistics = self._measure(
                design, block.x[0], block.x[0][np.searchsorted(block.rows[0], design.rows)]
            )
        return None

    def _measure(self, design: Design, x: np.ndarray, uses: np.ndarray) -> dict[str, float | Estimate]:
        """The statistics of a layer's rows x (m, d) and the uses among them (n, d)."""
        has_first = len(design.later) < len(design.rows)
        space, rest = LayerScale.of_some(x, design.is_later) if has_first else (LayerScale.of(x), None)
        same_place, u = design.same_place, space.normalized(uses)
        value = self._estimate(design, u)
        plain = value.value if isinstance(value, Estimate) else value
        variants = dict.fromkeys(CUTS, plain)
        if len(cut_factors(space.variances, CUT)):
            variants = {name: same_place.measure(space.normalized(uses, cut)).value for name, cut in CUTS.items()}
        variants["by_dimension"] = same_place.measure(scaled_by_dimension(uses, same_place.uses.place)).value
        variants["all_places"] = design.all_places.measure(u).value
        if rest is not None:
            variants["no_first"] = design.without_first.measure(rest.normalized(uses[design.later])).value
        if len(design.distinct) < len(design.rows):
            variants["no_near_duplicates"] = design.without_repeats.measure(u[design.distinct]).value
        values = [plain, *variants.values()]
        ends = {"lowest": float(np.fmin.reduce(values)), "highest": float(np.fmax.reduce(values))}
        bands = float(same_place.uses.mix.filled.sum())
        windows = {"in_windows": design.in_windows} if design.in_windows else {}
        counts = {"bands": bands, **windows, "n": float(len(uses))}
        return {"raw": value, **ends, **variants, "loudest": space.loudest, **counts}

    def _estimate(self, design: Design, u: np.ndarray) -> float | Estimate:
        """The value with its interval."""
        rng, replicates = self.resampling
        result = design.same_place.measure(u, influence=replicates > 0)
        if result.influence is None:
            return result.value
        if result.by_form is not None:
            self._words = design.word_rows(result.by_form)
        design.resamples = design.resamples or Resamples(design.clusters, replicates, rng)
        influence = design.clusters.sum_by_block(design.same_place.uses.document, result.influence)
        influence += result.of_total * design.words_in_block
        variance = influence @ influence
        if variance:
            # Each pair's noise is in the influence of both its uses: once too often. It is estimated, so half of the
            # error stays at least.
            influence *= np.sqrt(max(1 - result.pair_noise / variance, 0.25))
        curve = Curve(np.array([result.value]), influence[None])
        return Estimate.of(result.value, design.resamples.of(curve)[0])

    def outputs(self) -> dict[str, list[dict[str, object]]]:
        return {"words": self._words}

    def compute(self) -> dict[str, float | Estimate]:
        """raw (the value), lowest and highest of all variants, each variant, loudest, bands that count, n uses;
        in_windows, the share of these in texts longer than the model's window, where there are any."""
        return self._statistics


class Design:
    """What is compared in a text, once for all layers. `rows` (n,) are those of the uses, by form and place; `later`
    the numbers of those that aren't first in their sentence, `distinct` of those in no near-duplicate."""

    def __init__(self, text: Text) -> None:
        occurrences = text.occurrences
        self.rows, form, counts, self._word_of_form = _forms(text)
        place = text.tokens[self.rows, 0]
        order = np.lexsort([place, form])
        self.rows, self.clusters = self.rows[order], occurrences.clusters
        of_block = self.clusters.of_row[occurrences.rows]
        self.words_in_block = np.bincount(of_block, minlength=self.clusters.n_blocks)  # of the text
        self.resamples: Resamples | None = None
        begins_anew = (np.diff(text.tokens[:, 0]) < 0) & (np.diff(text.sentence_of_row) == 0)
        longer = np.isin(text.sentence_of_row[self.rows], text.sentence_of_row[1:][begins_anew])
        self.in_windows = float(longer.sum() / max(len(longer), 1))
        if not len(order):
            return
        uses = Uses(
            form=form[order],
            place=place[order],
            document=self.clusters.of_row[self.rows],
            neighbours=_neighbours(text)[self.rows],
            mix=occurrences.mix.of(counts, occurrences.text_total, occurrences.min_contexts),
        )
        self.same_place = Comparison(uses, strata(uses.place))
        self.all_places = Comparison(uses, np.zeros_like(uses.place))
        self.later = np.flatnonzero(occurrences.places[self.rows] > 0)
        self.is_later = occurrences.places[occurrences.rows] > 0
        self.distinct = np.flatnonzero(~_is_near_duplicate(text)[text.sentence_of_row[self.rows]])
        self._uses = uses

    @cached_property
    def without_first(self) -> Comparison:
        """That of uses at like places, but those that are first in their sentence."""
        return self._of_some(self.later)

    @cached_property
    def without_repeats(self) -> Comparison:
        """The same but those in near-duplicates."""
        return self._of_some(self.distinct)

    def _of_some(self, which: np.ndarray) -> Comparison:
        some = self._uses.subset(which)
        return Comparison(some, strata(some.place))

    def word_rows(self, by_form: np.ndarray) -> list[dict[str, object]]:
        """The contextuality of each word with pairs enough, from the sums of its forms (3, forms), and its pairs."""
        names, number = np.unique(self._word_of_form, return_inverse=True)
        numerator, denominator, pairs = (np.bincount(number, part) for part in by_form)
        return [
            {"word": str(names[i]), "contextuality": numerator[i] / denominator[i], "pairs": round(pairs[i])}
            for i in np.flatnonzero(pairs >= PAIRS).tolist()
        ]


def _forms(text: Text) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The rows of forms that stand in enough sentences (n,), the number of each one's form; and how often each form
    stands in the text, and its word (forms,)."""
    occurrences = text.occurrences
    rows = np.unique(occurrences.by_word.rows)
    numbers: dict[object, int] = {}
    keys = zip(np.asarray(text.store.unit_codes)[rows].tolist(), text.tokens[rows, 2].tolist(), strict=True)
    form = np.array([numbers.setdefault(key, len(numbers)) for key in keys], np.int64)
    stand = np.unique(form * len(text.corpus.sentences) + text.sentence_of_row[rows]) // len(text.corpus.sentences)
    is_frequent = np.bincount(stand, minlength=len(numbers)) >= occurrences.min_contexts
    rows, form = rows[is_frequent[form]], np.unique(form[is_frequent[form]], return_inverse=True)[1]
    # a bounded text has rows of some of a word's occurrences
    words = dict(
        zip(
            occurrences.forms[occurrences.by_word.rows[occurrences.by_word.starts[:-1]]].tolist(),
            range(len(occurrences.words)),
            strict=True,
        )
    )
    in_text = np.array([occurrences.text_counts[word] for word in occurrences.words]) / np.maximum(
        occurrences.counts, 1
    )
    of_row = np.array([words[i] for i in occurrences.forms[rows].tolist()], np.int64)
    counts = np.bincount(form, in_text[of_row])
    of_form = of_row[np.unique(form, return_index=True)[1]]
    return rows, form, counts.round().astype(np.int64), np.array(occurrences.words, object)[of_form]


def _neighbours(text: Text) -> np.ndarray:
    """(n_rows,) a number for the words before and behind each row's word, equal for equal ones."""
    units = np.asarray(text.store.vocabulary, object)[np.asarray(text.store.unit_codes)].tolist()
    numbers: dict[tuple[str, str], int] = {}
    result = np.empty(len(units), np.int64)
    for a, b in pairwise(np.asarray(text.store.offsets).tolist()):
        at = text.positions[a:b].tolist()
        is_known = min(at, default=-1) >= 0
        words = ["", *(text.corpus.sentences[text.sentence_of_row[a]].words if is_known else units[a:b]), ""]
        for row, i in enumerate(at if is_known else range(b - a), start=a):
            result[row] = numbers.setdefault((words[i], words[i + 2]), len(numbers))
    return result


def _is_near_duplicate(text: Text) -> np.ndarray:
    """(n_sentences,) whether an earlier sentence shares half of the shorter one's runs of three words."""
    from scipy.sparse import csr_array

    numbers: dict[tuple[str, ...], int] = {}
    runs = [
        {numbers.setdefault(run, len(numbers)) for run in zip(s.words, s.words[1:], s.words[2:], strict=False)}
        for s in text.corpus.sentences
    ]
    sizes = np.array([len(of_sentence) for of_sentence in runs])
    flat = np.fromiter(chain.from_iterable(runs), np.int64, sizes.sum())
    tells = (np.bincount(flat, minlength=len(numbers)) <= MANY)[flat].astype(np.int64)
    has = csr_array((tells, flat, np.cumsum([0, *sizes])), shape=(len(runs), len(numbers)))
    shared = (has @ has.T).tocoo()
    enough = ALIKE * np.minimum(sizes[shared.row], sizes[shared.col])
    result = np.zeros(len(runs), bool)
    result[shared.row[(shared.col < shared.row) & (shared.data > 0) & (shared.data >= enough)]] = True
    return result
