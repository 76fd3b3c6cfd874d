"""Whether a candidate gives the vectors of a reference: one verdict, whatever the two are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ctxexp import Encoder
from ctxexp.command import Experiment, configured, registry
from ctxexp.datasets import tokenizer, user_path
from ctxexp.errors import ConfigError, DataError, error_text
from ctxexp_compare.checks.causes import explain
from ctxexp_compare.checks.encoding import BATCH, text_vectors
from ctxexp_compare.checks.layers import LayerCheck, check_layers, likely_cause
from ctxexp_compare.checks.make import MAX_SENTENCES, Rerun, has_length, pin_sentences
from ctxexp_compare.checks.text import check_sentences
from ctxexp_compare.checks.tokens import check_tokens
from ctxexp_compare.light.files import SUFFIXES, read_matrix
from ctxexp_compare.light.pin import Pin
from ctxexp_compare.light.server import Server
from ctxexp_compare.light.vectors import (
    SAME,
    UNEVEN,
    Explanation,
    from_vectors,
    grade,
    is_even,
    root_mean_square,
    row_errors,
    unit,
)
from ctxexp_compare.light.verdict import Verdict, judge, symptom, with_effects
from ctxexp_compare.space import evenly_spaced

TOKEN_SUFFIXES = (".json", ".onnx", ".xml")  # files of vectors of tokens alone
FEW_WEIGHTS = 0.25  # of the tensors: rounding changes more
ASKED = 6  # texts that a server is asked for again
Vectors = Callable[[Sequence[str]], np.ndarray]
Side = str | Path | Pin | Encoder | np.ndarray | Vectors | Any
TELL = "pooling, prompts, layers and tokenizers can't be told from {}: name its model as the reference"


def check(
    reference: Side,
    candidate: Side | None = None,
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
        options: Further arguments of the command line for models.
        batch: How many texts are encoded at once, or sent in one request.

    Returns:
        The verdict.

    Raises:
        ConfigError: Sides that can't be compared, or texts that are missing.
        DataError: A file that can't be read, or has another number of rows than there are texts.

    Example:
        >>> x = np.random.default_rng(0).normal(size=(50, 8))
        >>> verdict = check(x, x[:, ::-1])
        >>> verdict.verdict, verdict.cause
        ('different', 'dimensions permuted')
    """
    sides = partial(_Place.of, server=partial(Server, model=model, key=key), options=options, pooling=pooling)
    one = sides(reference)
    if candidate is None:
        if one.pin is None:
            raise ConfigError(f"{one.title}: check what against it? name the candidate; a pin alone has its own model")
        if not one.pin.model:
            raise ConfigError(f"{one.title} is of a model in memory: name one, as in ctxexp check FILE minilm")
        candidate, sides = one.pin.model, partial(sides, options=[*one.pin.options, *options])
    other = sides(candidate)
    if one.pin is not None and text is not None:
        raise ConfigError(f"{one.title} has its own text: leave text= out, or name the model as the reference")
    asked = None if text is None else _texts(text)
    if other.tokens or one.tokens:
        return _check_token_file(one, other, asked)
    layers = _check_layers(one, other, asked, batch)
    texts = asked or one.texts or other.texts
    if one.encoder is not None and not texts and other.array is None:
        texts = [sentence.text for sentence in check_sentences(one.encoder)]
    are_arrays = one.array is not None and other.array is not None
    if not texts and not are_arrays and (layers is None or one.view or other.view):
        raise ConfigError("text=: which texts are these the vectors of? a file with one a line")
    verdict = Verdict("same", n=0)
    if one.has_vectors and other.has_vectors:
        verdict = _check_texts(one, other, texts or [], batch, queries=queries, cosine=cosine)
    elif layers is None:
        lacking = one if not one.has_vectors else other
        raise ConfigError(f"{lacking.title} gives no vectors of whole texts, which alone the two could share")
    return verdict if layers is None else _with_layers(verdict, layers)


class _Place(NamedTuple):
    """A reference or candidate: one of the five is not None, or `tokens` is a file of vectors of tokens."""

    title: str
    pin: Pin | None = None
    encoder: Encoder | None = None
    array: np.ndarray | None = None
    ask: Vectors | None = None
    tokens: Path | None = None
    pooling: str = ""

    @classmethod
    def of(cls, side: Side, *, server: Callable[[str], Server], options: Sequence[str], pooling: str) -> _Place:
        """What is named. Raises ConfigError or DataError for what can't be read."""
        if isinstance(side, Pin):
            return cls(side.title, pin=side)
        if isinstance(side, np.ndarray):
            return cls("the array", array=_matrix(side, "the array"))
        if isinstance(side, str) and side.startswith(("http://", "https://")):
            try:
                asked = server(side)
            except OSError as error:
                raise ConfigError(str(error)) from None
            return cls(asked.title, ask=asked)
        if not isinstance(side, str | Path):
            if hasattr(side, "modules") and "SentenceTransformer" in [one.__name__ for one in type(side).__mro__]:
                encoder = Experiment(configured(side, options=options)).encoder
                ask: Any = getattr(side, "encode")  # noqa: B009  # it is asked as it serves
                return cls("the model in memory", encoder=encoder, ask=ask, pooling=pooling)
            if not isinstance(side, Encoder) and callable(side) and not hasattr(side, "parameters"):
                return cls("the function", ask=side)
        elif (file := user_path(str(side))).is_file() and file.suffix != ".gguf":
            return cls._of_file(file)
        elif file.suffix in (*SUFFIXES, *TOKEN_SUFFIXES, ".pin"):
            raise DataError(f"no such file: {file}")
        elif file.is_dir() and not (file / "config.json").exists() and [*file.glob("*.safetensors")]:
            return cls(str(side), tokens=file)
        experiment = Experiment(configured(side, options=options))
        return cls(experiment.title, encoder=experiment.encoder, pooling=pooling)

    @classmethod
    def _of_file(cls, file: Path) -> _Place:
        try:
            if file.suffix in TOKEN_SUFFIXES:
                return cls(file.name, tokens=file)
            if file.suffix not in SUFFIXES:
                return cls(file.name, pin=Pin.load(file))
            x = read_matrix(file)
        except (ValueError, OSError, KeyError) as error:
            raise DataError(f"{file} can't be read: {error_text(error)}") from None
        return cls(file.name, tokens=file) if x is None else cls(file.name, array=_matrix(x, file.name))

    @property
    def view(self) -> Encoder | None:
        return None if self.encoder is None else self.encoder.sentence_encoder()

    @property
    def has_vectors(self) -> bool:
        """Whether it gives vectors of whole texts."""
        if self.pin is not None:
            return len(self.pin.vectors) > 0
        return self.array is not None or self.ask is not None or self.view is not None

    @property
    def texts(self) -> list[str] | None:
        """The texts that it is of; None for any."""
        return None if self.pin is None else [self.pin.texts[i] for i in self.pin.vector_texts]

    @property
    def has_length(self) -> bool:
        """Whether it says how long vectors are."""
        if self.encoder is not None:
            return has_length(self.view)
        return self.pin is None or self.pin.has_length

    def vectors(self, texts: Sequence[str], batch: int) -> np.ndarray:
        """(n, dim) of whole texts; NaN for one that it refuses."""
        if self.pin is not None:
            return self.pin.vectors
        if self.array is not None:
            if texts and len(texts) != len(self.array):
                raise DataError(f"{self.title} has {len(self.array)} rows, the text {len(texts)}: expected one each")
            return self.array
        if self.ask is not None:
            try:
                given = self.ask(texts, batch) if isinstance(self.ask, Server) else self.ask(list(texts))
                return _matrix(np.asarray(given), self.title, allows_nan=True)
            except OSError as error:
                raise DataError(str(error)) from None
        view = self.view
        assert view is not None
        if self.pooling and self.pooling not in view.poolings:
            raise ConfigError(f"pooling={self.pooling}: {self.title} gives {', '.join(view.poolings)}")
        return text_vectors(view, texts, self.pooling or view.poolings[0], batch=batch)


def _matrix(x: np.ndarray, title: str, *, allows_nan: bool = False) -> np.ndarray:
    if x.ndim != 2 or not np.issubdtype(x.dtype, np.number) or not (allows_nan or np.isfinite(x).all()):
        raise DataError(f"{title}: expected finite numbers (texts, dimensions), got shape {x.shape} of {x.dtype}")
    return x


def _texts(text: str | Path | Iterable[str]) -> list[str]:
    if not isinstance(text, str | Path):
        return list(text)
    corpus: Any = registry().find("dataset", "text").factory(path=str(text), tokenizer="whitespace")
    return [sentence.text for sentence in corpus.sentences]


def _check_token_file(one: _Place, other: _Place, texts: list[str] | None) -> Verdict:
    if one.encoder is None or other.tokens is None:
        raise ConfigError("vectors of tokens are checked against a model: ctxexp check MODEL FILE text=TEXT")
    if texts is None:
        raise ConfigError("text=: which text are these the vectors of? a file, a sentence a line")
    return check_tokens(one.encoder, other.tokens, list(map(tokenizer("english"), texts)))


def _check_layers(one: _Place, other: _Place, texts: list[str] | None, batch: int) -> LayerCheck | None:
    """The layers of two models, or of a pin and a model; None where one has none, or they have other shapes."""
    if other.encoder is None or (one.pin is None and one.encoder is None):
        return None
    pin, encoder = one.pin, one.encoder
    shape = (pin.n_layers, pin.dim) if pin is not None else (encoder.n_layers, encoder.dim)  # type: ignore[union-attr]
    if shape != (other.encoder.n_layers, other.encoder.dim):
        if not (one.has_vectors and other.has_vectors):
            raise ConfigError(
                f"{one.title} has {shape[0]} layers of {shape[1]}, {other.title} {other.encoder.n_layers} of "
                f"{other.encoder.dim}: no vector of one can be compared with the other's"
            )
        return None
    if pin is None:
        assert encoder is not None
        own = check_sentences(encoder) if texts is None else list(map(tokenizer("english"), texts))
        few = [own[i] for i in evenly_spaced(range(len(own)), MAX_SENTENCES)]
        pin = pin_sentences(encoder, few, title=one.title, reruns=(Rerun(1),))
    return check_layers(pin, other.encoder, batch=batch)


def _check_texts(
    one: _Place,
    other: _Place,
    texts: list[str],
    batch: int,
    *,
    queries: str | Path | Iterable[str] | None,
    cosine: float | None,
) -> Verdict:
    a, b = one.vectors(texts, batch), other.vectors(texts, batch)
    if len(a) != len(b):
        raise DataError(f"{one.title} has {len(a)} rows, {other.title} {len(b)}: expected the same texts")
    there = np.isfinite(a).all(axis=1) & np.isfinite(b).all(axis=1)
    if not there.any():
        raise DataError(f"{other.title} gives no vector of any text")
    notes = [] if there.all() else [f"note: {(~there).sum()} of {len(there)} texts are refused, maybe as too long"]
    texts = [text for text, is_there in zip(texts, there, strict=False) if is_there]
    a, b = a[there], b[there]
    verdict = _judge(one, other, texts, a, b, batch)
    if verdict.verdict == "different" and not verdict.cause and one.encoder is None:
        notes.append("note: " + TELL.format("a pin" if one.pin is not None else "vectors alone"))
    if not one.has_length and verdict.verdict != "different":
        notes.append(f"note: nothing in the files of {one.title} says how long vectors are: directions were compared")
    pair = None
    if queries is not None:
        asked = _texts(queries)
        if one.array is not None or other.array is not None or one.pin is not None:
            raise ConfigError("queries=: their vectors are asked for, which files and pins can't give")
        pair = one.vectors(asked, batch), other.vectors(asked, batch)
    return with_effects(replace(verdict, notes=(*verdict.notes, *notes)), a, b, queries=pair, cosine=cosine)


def _judge(one: _Place, other: _Place, texts: list[str], a: np.ndarray, b: np.ndarray, batch: int) -> Verdict:
    noise = one.pin.sentence_noise if one.pin is not None else 0.0
    plain = judge(a, b, noise=noise, has_length=one.has_length)
    if plain.verdict == "same":
        return plain
    if other.ask is not None and (seen := _behaviour(other, texts, a, b, batch)):
        return replace(plain, verdict="different", cause=seen[0], detail=seen[1], rounding="")

    def explanations() -> Iterable[Explanation]:
        yield from from_vectors(a, b)
        if one.encoder is not None and hasattr(one.encoder, "read_pieces"):
            yield from explain(one.encoder, texts, a, b, one.pooling)

    verdict = judge(a, b, explanations(), noise=noise, has_length=one.has_length)
    if verdict.cause or a.shape != b.shape or not texts:
        return verdict
    if repeated := _repeated(texts, b):
        return replace(verdict, verdict="different", cause="unstable", detail=repeated, rounding="")
    if verdict.verdict == "rounded":
        return verdict
    lengths = [len(text.split()) for text in texts]
    if one.pin is not None:
        lengths = [one.pin.lengths[i] for i in one.pin.vector_texts][: len(texts)]
    cause, detail = symptom(texts, lengths, row_errors(unit(a), unit(b)), max(4 * noise, SAME))
    return replace(verdict, cause=cause, detail=detail or verdict.detail)


def _repeated(texts: list[str], b: np.ndarray) -> str:
    """Whether equal texts have unequal vectors, in words."""
    first = dict[str, int]()
    for i, text in enumerate(texts):
        far = float(row_errors(b[first.setdefault(text, i)][None], b[i][None])[0])
        if far > UNEVEN * SAME:
            return f"{text[:40]!r} stands there twice, its vectors differ by {far:.2g} of their length"
    return ""


def _behaviour(other: _Place, texts: list[str], a: np.ndarray, b: np.ndarray, batch: int) -> tuple[str, str] | None:
    """What a server does to equal requests, and to a text alone: the cause and its detail."""
    order = np.argsort([len(text) for text in texts], kind="stable")[: max(ASKED, 3 * len(texts) // 4)]
    some = [int(order[i]) for i in evenly_spaced(range(len(order)), ASKED)]
    asked = [texts[i] for i in some]
    first, again = other.vectors(asked, batch), other.vectors(asked, batch)
    if (far := float(root_mean_square(row_errors(first, again)))) > UNEVEN * SAME:
        return "unstable", f"two equal requests are answered by vectors that differ by {far:.2g} of their length"
    alone = np.concatenate([other.vectors([text], 1) for text in asked])
    far = float(root_mean_square(row_errors(alone, b[some])))
    if far <= UNEVEN * SAME or a.shape != b.shape:
        return None
    plain = float(root_mean_square(row_errors(unit(a[some]), unit(b[some]))))
    if float(root_mean_square(row_errors(unit(a[some]), unit(alone)))) < plain / 2:
        return "padding", f"a text alone and among others get vectors that differ by {far:.2g} of their length"
    return None


def _with_layers(verdict: Verdict, layers: LayerCheck) -> Verdict:
    """The verdict on whole texts with what words, tokenizer, settings and weights say."""
    by, at, weights = layers.by_layer, layers.moved, layers.weights
    rows = tuple(layers.frame.to_dict("records"))
    most = int(np.argmax(by))
    if not verdict.n:
        verdict = replace(verdict, error=float(by[most]), noise=float(layers.tolerance[most]), n=len(layers.pin.rows))
    if len(at):
        verdict = replace(
            verdict, error=max(verdict.error, float(by[most])), worst=max(verdict.worst, float(layers.rows.max()))
        )
    verdict = replace(verdict, layers=rows)
    told = (*layers.settings, *layers.tokenizer)
    cause, where = likely_cause(layers)
    if layers.environment and (len(at) or told or verdict.verdict != "same"):
        verdict = replace(
            verdict, notes=(*verdict.notes, f"note: the environment differs: {', '.join(layers.environment)}")
        )
    if told:
        name = layers.settings_cause or ("tokenizer" if layers.tokenizer else "") or verdict.cause or cause
        return replace(verdict, verdict="different", cause=name, detail="; ".join(told), rounding="")
    if verdict.verdict == "different" and verdict.cause:
        return verdict
    if not len(at) and verdict.verdict == "same":
        hidden = f"{weights.text}, which no vector of these texts shows"
        return replace(verdict, verdict="different", cause="weights", detail=hidden) if weights.text else verdict
    usable = layers.rows[most, layers.is_usable]
    rounding = grade(max(float(by[most]), verdict.error if np.isfinite(verdict.error) else 0))
    is_known = bool(layers.pin.facts["weights"])
    few = is_known and bool(weights.text) and weights.share < FEW_WEIGHTS
    same = "" if weights.text or not is_known else "all weights are what they were: code, settings or engine changed"
    if rounding and not cause and not few and verdict.verdict != "different" and is_even(usable):
        notes = [*verdict.notes, *([f"note: {same}"] if same else [])]
        return replace(verdict, verdict="rounded", rounding=rounding, notes=tuple(notes))
    detail = "; ".join(filter(None, [where or verdict.detail, weights.text or same]))
    name = cause or ("weights" if weights.text else "")
    return replace(verdict, verdict="different", cause=name, detail=detail, rounding="")
