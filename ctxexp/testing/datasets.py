"""What holds for every data set: words where their spans say, gold that points somewhere, the same corpus each time."""

from __future__ import annotations

from collections.abc import Callable

from ctxexp.dataset import Corpus, check_gold, check_sentences
from ctxexp.testing.report import Broken, Report, built, called


def check_dataset(
    make: Callable[[], Corpus] | Corpus, *, elsewhere: Callable[[], str] | None = None, name: str = ""
) -> Report:
    """The laws of `ctxexp.Corpus`; raises ConformanceError naming each that is broken.

    `elsewhere` gives the fingerprint that another process finds, where sets have another order.
    """
    corpus, again = built(make, Corpus)
    report = Report(name or called("dataset", corpus))
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
                raise Broken(
                    "built twice, it has different sentences, name or choices: sort files and sets, seed what is drawn"
                )
    if elsewhere is not None:
        with report.law("the same in another process"):
            if elsewhere() != corpus.fingerprint:
                raise Broken("another process gets other sentences: is it the order of a set? Sort it")
    texts = len({s.text for s in corpus.sentences})
    report.notes.append(f"{len(corpus.sentences):,} sentences, {texts:,} distinct, {corpus.n_words:,} words")
    return report.conclude()


def _interface(corpus: Corpus) -> None:
    if not isinstance(corpus, Corpus):
        raise Broken(f"expected a ctxexp.Corpus, got {type(corpus).__name__}")
    if not isinstance(corpus.name, str) or not corpus.name.strip():
        raise Broken(f"name is {corpus.name!r}; expected a text for charts and tables")
    if not isinstance(corpus.sentences, tuple) or not corpus.n_words:
        raise Broken("it has no words; expected a tuple of sentences")
    wrong = {k: v for k, v in corpus.choices.items() if not isinstance(k, str) or not isinstance(v, str)}
    if wrong:
        raise Broken(f"choices are texts by name, got {wrong}")
