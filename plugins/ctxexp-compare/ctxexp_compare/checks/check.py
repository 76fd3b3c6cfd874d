"""Whether a candidate gives the vectors of a reference: one verdict, whatever the two are."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ctxexp import Encoder
from ctxexp.command import Experiment, configured, registry
from ctxexp.datasets import tokenizer, user_path
from ctxexp.errors import ConfigError, DataError
from ctxexp_compare.checks.causes import explain
from ctxexp_compare.checks.encoding import BATCH, light_errors, text_layers
from ctxexp_compare.checks.facts import TOKENIZER as CHANGED
from ctxexp_compare.checks.facts import Facts, cause_of, changed_weights, differences, facts_of
from ctxexp_compare.checks.make import has_length
from ctxexp_compare.checks.text import MORE, own_texts
from ctxexp_compare.checks.tokens import check_tokens
from ctxexp_compare.light.files import SUFFIXES
from ctxexp_compare.light.pin import Pin
from ctxexp_compare.light.sides import Side, compare
from ctxexp_compare.light.vectors import Explanation
from ctxexp_compare.light.verdict import Verdict

FEW_WEIGHTS = 0.25  # of the tensors: rounding changes more
Place = Any  # a name, file, folder or URL, a pin, an array, an encoder or other model, or a function of texts


@light_errors()
def check(
    reference: Place,
    candidate: Place | None = None,
    *,
    text: str | Path | Iterable[str] | None = None,
    queries: str | Path | Iterable[str] | None = None,
    cosine: float | None = None,
    pooling: str = "",
    model: str = "",
    key: str = "",
    options: Sequence[str] = (),
    batch: int = BATCH,
) -> Verdict:
    """Compare the vectors of two places: the candidate's are to be the reference's.

    Args:
        reference: A pin or its file, a model (a name with its words, a folder, a GGUF file, one in memory), a file of
            vectors or an array (n, dim), a server's URL, or a function of a list of texts.
        candidate: Likewise; None: the model that the pin names, as it is now.
        text: The texts, a file with one a line or a list; None: the pin's, else some of ctxexp's own. Files and arrays
            have a row each.
        queries: Texts whose nearest among `text` are looked at, in place of each text's own.
        cosine: A threshold for the reference, whose answer in the candidate is wanted.
        pooling: How the reference's sentence vectors are made, where its files don't say (mean, cls, last ...).
        model: The model's name at the server.
        key: The environment variable that holds the server's key.
        options: Further arguments of the command line for the candidate; for the reference where the candidate is no
            model.
        batch: How many texts are encoded at once, or sent in one request.

    Returns:
        The verdict.

    Raises:
        ConfigError: Sides that can't be compared.
        DataError: Texts that are missing, a file that can't be read, or has another number of rows than there are
            texts, a server that can't be asked.

    Example:
        >>> x = np.random.default_rng(0).normal(size=(50, 8))
        >>> verdict = check(x, x[:, ::-1])
        >>> verdict.verdict, verdict.cause
        ('different', 'dimensions permuted')
    """
    other = None if candidate is None else _source(candidate, model, key, options, "")
    is_candidates = other is not None and other.encoder is not None
    one = _source(reference, model, key, () if is_candidates else options, pooling)
    if other is None:
        if one.pin is None:
            raise ConfigError(
                f"{reference} is checked against what? ctxexp check MODEL {reference}; a pin alone will do"
            )
        if not one.pin.model:
            raise ConfigError(f"{reference} is of a model in memory: name one, as in ctxexp check FILE minilm")
        other = _source(one.pin.model, model, key, [*one.pin.options, *options], "")
    if one.pin is not None and text is not None:
        raise ConfigError(f"{reference} has its own text: leave text= out, or name the model as the reference")
    texts = _texts(text)
    if one.tokens or other.tokens:
        if one.encoder is None or other.tokens is None or not texts:
            raise ConfigError("vectors of tokens are checked against a model: ctxexp check MODEL FILE text=TEXT")
        return check_tokens(one.encoder, other.tokens, list(map(tokenizer("english"), texts)))
    assert one.side is not None
    assert other.side is not None
    if one.encoder is not None and not texts and other.side.rows is None:
        corpus = one.encoder.corpus
        texts = own_texts(one.encoder, MORE) if corpus is None else [sentence.text for sentence in corpus.sentences]

    def causes(kept: Sequence[str], a: np.ndarray, b: np.ndarray) -> Iterable[Explanation]:
        if hasattr(one.encoder, "read_pieces"):
            yield from explain(one.encoder, kept, a, b, pooling)

    verdict = compare(
        one.side, other.side, texts, queries=_texts(queries), cosine=cosine, batch=batch,
        explain=causes if one.encoder is not None else None,
    )  # fmt: skip
    if other.encoder is None or one.side.serves or other.side.serves:
        return verdict
    texts = texts or list(one.side.texts)
    now = facts_of(other.encoder, texts)
    if one.pin is not None:
        return _with_facts(verdict, one.pin.facts, now)
    return verdict if one.encoder is None else _with_facts(verdict, facts_of(one.encoder, texts), now)


class _Source(NamedTuple):
    """A reference or candidate: its side, or the place of vectors of tokens, and the model or pin that it is."""

    side: Side | None
    encoder: Encoder | None = None
    pin: Pin | None = None
    tokens: Path | None = None


def _source(place: Place, model: str, key: str, options: Sequence[str], pooling: str) -> _Source:
    """What is named. Raises ConfigError, DataError, ValueError or OSError for what can't be read."""
    if isinstance(place, Pin):
        return _Source(Side.of_pin(place), pin=place)
    if isinstance(place, np.ndarray):
        return _Source(Side.of_array(place))
    if isinstance(place, str) and re.match(r"https?://|[\w.-]+:\d+(/|$)", place):
        return _Source(Side.of_server(place if "://" in place else f"http://{place}", model, key))
    if isinstance(place, str | Path):
        file = user_path(str(place))
        if file.is_dir() and not (file / "config.json").exists() and [*file.glob("*.safetensors")]:
            return _Source(None, tokens=file)
        if file.suffix in (*SUFFIXES, ".pin") or (file.is_file() and file.suffix != ".gguf"):
            if not file.is_file():
                raise DataError(f"no such file: {file}")
            side = Side.of_file(file)
            pin = Pin.load(file) if file.suffix not in SUFFIXES else None
            return _Source(side, pin=pin, tokens=file if side is None else None)
    elif not isinstance(place, Encoder) and callable(place) and not hasattr(place, "parameters"):
        return _Source(Side.of_function(place))
    experiment = Experiment(configured(place, options=options))
    encoder, view = experiment.encoder, experiment.encoder.sentence_encoder()
    if pooling and (view is None or pooling not in view.poolings):
        given = "no vectors of sentences" if view is None else ", ".join(view.poolings)
        raise ConfigError(f"pooling={pooling}: {experiment.title} gives {given}")
    side = Side(
        experiment.title, ask=lambda texts, batch: text_layers(encoder, texts, pooling, batch=batch)[-1],
        has_length=has_length(encoder),
    )  # fmt: skip
    if any(kind.__name__ == "SentenceTransformer" for kind in type(place).__mro__):  # asked as it serves
        side = replace(Side.of_function(place.encode, "the model in memory"), has_length=side.has_length)
    return _Source(side, encoder)


def _texts(text: str | Path | Iterable[str] | None) -> list[str]:
    if text is None:
        return []
    if not isinstance(text, str | Path):
        return list(text)
    corpus: Any = registry().find("dataset", "text").factory(path=str(text), tokenizer="whitespace")
    return [sentence.text for sentence in corpus.sentences]


def _with_facts(verdict: Verdict, then: Facts, now: Facts) -> Verdict:
    """The verdict on vectors with what settings, tokenizer and weights say."""
    settings = differences(then["settings"], now["settings"])
    pieces = differences(then["tokenizer"], now["tokenizer"])
    told = [*(f"{name} {change}" for name, change in settings.items()), *(CHANGED[name] for name in pieces)]
    weights, share = changed_weights(then["weights"], now["weights"])
    place = differences(then["environment"], now["environment"])
    if place and (told or verdict.verdict != "same"):
        note = f"note: the environment differs: {', '.join(f'{name} {change}' for name, change in place.items())}"
        verdict = replace(verdict, notes=(*verdict.notes, note))
    if told:
        name = cause_of(settings) or ("tokenizer" if pieces and not settings else "") or verdict.cause
        return verdict.with_cause(name, "; ".join(told))
    if verdict.verdict == "different" and verdict.cause:
        return verdict
    if verdict.verdict == "same":
        hidden = f"{weights}, which no vector of these texts shows"
        return verdict.with_cause("weights", hidden) if weights else verdict
    unchanged = bool(then["weights"] and now["weights"]) and not weights
    same = "all weights are what they were: code, settings or engine changed" if unchanged else ""
    if verdict.verdict == "rounded" and not (weights and share < FEW_WEIGHTS):
        return replace(verdict, notes=(*verdict.notes, *([f"note: {same}"] if same else [])))
    detail = "; ".join(filter(None, [verdict.detail, weights or same]))
    return verdict.with_cause("weights" if weights else "", detail)
