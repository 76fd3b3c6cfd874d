"""Laws of data sets: words match their spans, gold refers to sentences of the corpus, each build is the same."""

from __future__ import annotations

from collections.abc import Callable

from ctxexp.dataset import Corpus
from ctxexp.datasets.checks import check_gold, check_sentences
from ctxexp.testing.report import Breach, Report, subject_and_factory, subject_label


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
