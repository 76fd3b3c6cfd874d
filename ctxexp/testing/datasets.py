"""Laws of data sets (words match their spans, gold refers to sentences of the corpus, each build is the same) and of
the engines that read them (each worker builds its function once, every item's result comes back, exceptions reach the
caller).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial

from ctxexp.dataset import Corpus
from ctxexp.datasets.checks import check_gold, check_sentences
from ctxexp.engine import Engine
from ctxexp.testing.report import Breach, Report, subject_and_factory, subject_label

ITEMS = 12


def check_dataset(
    make: Callable[[], Corpus] | Corpus, *, elsewhere: Callable[[], str] | None = None, name: str = ""
) -> Report:
    """The laws of `ctxexp.Corpus`; raises ConformanceError naming each that is broken.

    `elsewhere` gives the fingerprint that another process finds, where sets have another order.
    """
    corpus, again = subject_and_factory(make, Corpus)
    report = Report(name or subject_label("dataset", corpus))
    with report.law("interface"):
        _interface(corpus)
    if report.failures:
        return report.conclude()
    with report.law("spans"):
        check_sentences(corpus)
    with report.law("pairs and senses"):
        check_gold(corpus)
    if again is not None:
        with report.law("stable fingerprint"):
            other = again()
            if other.fingerprint != corpus.fingerprint or other.choices != corpus.choices or other.name != corpus.name:
                raise Breach(
                    "built twice, it has different sentences, name or choices: sort files and sets, seed what is drawn"
                )
    if elsewhere is not None:
        with report.law("the same in another process"):
            if elsewhere() != corpus.fingerprint:
                raise Breach("another process gets other sentences: is it the order of a set? Sort it")
    texts = len({s.text for s in corpus.sentences})
    report.notes.append(f"{len(corpus.sentences):,} sentences, {texts:,} distinct, {corpus.n_words:,} words")
    return report.conclude()


def _interface(corpus: Corpus) -> None:
    if not isinstance(corpus, Corpus):
        raise Breach(f"expected a ctxexp.Corpus, got {type(corpus).__name__}")
    if not isinstance(corpus.name, str) or not corpus.name.strip():
        raise Breach(f"name is {corpus.name!r}; expected a text for charts and tables")
    if not isinstance(corpus.sentences, tuple) or not corpus.n_words:
        raise Breach("it has no words; expected a tuple of sentences")
    wrong = {k: v for k, v in corpus.choices.items() if not isinstance(k, str) or not isinstance(v, str)}
    if wrong:
        raise Breach(f"choices are texts by name, got {wrong}")


def check_engine(make: Callable[[], Engine], *, name: str = "") -> Report:
    """The laws of `ctxexp.engine.Engine`; raises ConformanceError naming each that is broken.

    An engine of several workers starts them, each a process of its own.
    """
    report = Report(name or subject_label("engine", make))
    with report.law("interface"):
        engine = make()
        if not isinstance(engine, Engine):
            raise Breach(f"it built {type(engine).__name__}; expected a ctxexp.engine.Engine")
        if not engine.name:
            raise Breach("name is empty; configs choose an engine by it")
        if engine.workers < 1 or engine.shard_tokens < 1:
            raise Breach(f"workers={engine.workers}, shard_tokens={engine.shard_tokens}: expected at least 1 of each")
    if report.failures:
        return report.conclude()
    with report.law("every item's result comes back once"):
        results = Counter(engine.map_unordered(_Squares, range(ITEMS)))
        if results != Counter(i * i for i in range(ITEMS)):
            raise Breach(f"map_unordered() of the squares below {ITEMS}² gave {sorted(results.elements())}")
    with report.law("no item, no result"):
        if list(engine.map_unordered(_Squares, [])):
            raise Breach("map_unordered() gave results for an empty list of items")
    with report.law("the work is made by workers, not for every item"):
        counts = set(engine.map_unordered(_CallCount, range(ITEMS)))
        if max(counts) == 0:
            raise Breach("map_unordered() made the work anew for every item: a worker would load its model as often")
    with report.law("what the work raises is raised"):
        try:
            list(engine.map_unordered(partial(_RaiseAt, ITEMS // 2), range(ITEMS)))
        except LookupError as error:
            if "no such number" not in str(error):
                raise Breach(f"another error arrived: {error}") from None
        else:
            raise Breach("map_unordered() went on after the work had raised an error")
    return report.conclude()


class _Squares:
    def __call__(self, item: int) -> int:
        return item * item


class _CallCount:
    """Returns the number of items that the same worker did before."""

    def __init__(self) -> None:
        self.done = -1

    def __call__(self, item: int) -> int:
        self.done += 1
        return self.done


class _RaiseAt:
    def __init__(self, at: int) -> None:
        self.at = at

    def __call__(self, item: int) -> int:
        if item == self.at:
            raise LookupError("no such number")
        return item
