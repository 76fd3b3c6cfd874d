"""Making a floor of a model: a text's domains, their sentences, and the vectors of these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.resources import files

import numpy as np

from ctxexp import Encoder, Sentence
from ctxexp.command import Experiment, configured
from ctxexp.datasets import tokenizer
from ctxexp.errors import ConfigError
from ctxexp_compare.floors.sample import collect, sampled
from ctxexp_compare.light.fit import fit_rows
from ctxexp_compare.light.floor import EMBEDDED, Floor
from ctxexp_compare.light.pairs import PAIRS
from ctxexp_compare.space import Texts

SENTENCES = 1500


def floor(
    model: str | Encoder,
    text: Texts | Mapping[str, Texts] | None = None,
    *,
    options: Sequence[str] = (),
    sentences: int = SENTENCES,
    seed: int = 0,
) -> Floor:
    """Measure the cosines of unrelated words and sentences in each layer of a model.

    Args:
        model: A name that the command knows, or an encoder.
        text: Sentences, as in `ctxexp.measure`, or several texts by name: domains, in each of which pairs are drawn.
            None: the embedded sentences, of ten registers.
        options: Further arguments of the command line for the model.
        sentences: How many are taken at most.
        seed: Of sentences and pairs.

    Returns:
        The floor.

    Raises:
        DataError: A text of fewer than 40 distinct sentences.

    Example:
        >>> from ctxexp import from_arrays
        >>> rng = np.random.default_rng(0)
        >>> words = [[f"w{10 * i + j}" for j in range(5)] for i in range(50)]
        >>> arrays = from_arrays(list(rng.normal(size=(50, 1, 5, 16))), words)
        >>> floor(arrays).probability(0.9)
        0.0005
    """
    encoder, domains, title = domain_sentences(model, text, options)
    label = EMBEDDED if text is None and encoder.corpus is None else ", ".join(domains)
    return floor_of_domains(encoder, domains, title, label, sentences=sentences, seed=seed)


def floor_of_domains(
    encoder: Encoder,
    domains: Mapping[str, Sequence[Sentence]],
    title: str,
    label: str,
    *,
    sentences: int = SENTENCES,
    seed: int = 0,
    is_question: bool = False,
) -> Floor:
    """The floor of an encoder over sentences by domain; `title` names the model, `label` the text. Of a question: of
    the last layer."""
    chosen, numbers = sampled(domains, sentences, seed), tuple(encoder.layer_numbers)
    rows = collect(encoder, chosen, np.random.default_rng(seed))
    if is_question:
        rows, numbers = {kind: replace(own, vectors=own.vectors[-1:]) for kind, own in rows.items()}, numbers[-1:]
    return Floor(
        title, label, numbers, tuple(rows), tuple(domains), *fit_rows(rows, len(domains), most=PAIRS, seed=seed)
    )


def domain_sentences(
    model: str | Encoder, text: Texts | Mapping[str, Texts] | None, options: str | Sequence[str]
) -> tuple[Encoder, Mapping[str, Sequence[Sentence]], str]:
    """The model, the text's sentences by domain, and the model's name."""
    experiment = Experiment(configured(model, None if isinstance(text, Mapping) else text, options))
    encoder, words = experiment.encoder, experiment.config.words
    title = experiment.title if isinstance(model, str) else encoder.title or "encoder"
    if isinstance(text, Mapping):
        texts = {str(name): Experiment(configured(model, own, options)).corpus.sentences for name, own in text.items()}
        if not texts:
            raise ConfigError("text: expected a text or more, got none")
        return encoder, texts, title
    if text is None and encoder.corpus is None:
        return encoder, registers(words.tokenizer, lower=words.lower), title
    return encoder, {experiment.corpus.name: experiment.corpus.sentences}, title


def registers(words: str, *, lower: bool = False) -> dict[str, list[Sentence]]:
    """The embedded sentences by register."""
    read = tokenizer(words, lower=lower)
    by_register: dict[str, list[Sentence]] = {}
    for line in (files("ctxexp.datasets") / "polysemy" / "sentences.tsv").read_text(encoding="utf-8").splitlines():
        _, _, register, sentence = line.split("\t")
        by_register.setdefault(register, []).append(read(sentence))
    return by_register
