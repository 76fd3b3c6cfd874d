"""`ctxexp floor MODEL`, and the cosine of one model in another."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from ctxexp import Encoder
from ctxexp.command import Experiment, configured
from ctxexp.datasets import user_path
from ctxexp.errors import ConfigError, DataError
from ctxexp.maths import interval, resamples
from ctxexp.report import Document, Table, check_absent, write_file
from ctxexp_compare.checks.encoding import light_errors, text_layers
from ctxexp_compare.checks.make import default_file
from ctxexp_compare.floors.make import domain_sentences, floor_of_domains
from ctxexp_compare.light.files import SUFFIXES, read_matrix
from ctxexp_compare.light.fit import TAILS
from ctxexp_compare.light.floor import CARRYING, EMBEDDED, Floor, said
from ctxexp_compare.light.pairs import WORDS, cosines_of
from ctxexp_compare.own_pairs import own_corpus
from ctxexp_compare.space import evenly_spaced

MOST = 5  # layers that are printed, evenly spaced
RELATED = 0.8  # of the highest score: pairs that count as related
REPLICATES = 2000


@light_errors()
def floor(
    model: str,
    other: str = "",
    *,
    cosine: float | None = None,
    text: str = "",
    pairs: Path | None = None,
    out: Path | None = None,
    options: str = "",
    replace: bool = False,
) -> Document:
    """Measure what cosines unrelated words and sentences have in each layer: what a high one is, here and in another.

    In Python: `ctxexp_compare.Floor.load("minilm.floor.json").probability(0.83)`, and `carry`.

    model: a model, quoted with its words: "minilm dtype=bfloat16"; the file of a floor; or a file of sentences' vectors
        (.npy, .npz, .safetensors, .parquet), which needs no text=
    other: another one: the cosine in it that lets through as many unrelated pairs as cosine= does in the first
    cosine: is it high? how many of unrelated pairs reach it, in the last layer
    text: sentences: a file, a folder or a data set; several by comma are domains, in each of which pairs are drawn;
        empty: the embedded ones, of ten registers, by which no cosine is carried
    pairs: with two models, related pairs: a table of text_a, text_b (those with a score near the highest), or of query,
        document: how many of them either cosine finds
    out: the file; null: MODEL.floor.json, or none where cosine= asks
    options: further arguments for the models
    example: ctxexp floor bert cosine=0.83
    """
    if cosine is not None and not -1 <= cosine <= 1:
        raise ConfigError(f"cosine={cosine:g}: expected -1 to 1")
    if other:
        if cosine is None or out:
            hint = f"cosine={other}" if re.fullmatch(r"-?[\d.]+", other) else "cosine="
            raise ConfigError(f"floor of two models takes {hint}, text=, pairs= and options=: a cosine is carried")
        if not text and not any(user_path(one).suffix in (".json", *SUFFIXES) for one in (model, other)):
            raise ConfigError(f"a cosine is carried by your own text alone, text=FILE, of {CARRYING} sentences or more")
        return _carry([_side(one, text, options, is_question=True) for one in (model, other)], cosine, pairs)
    if pairs:
        raise ConfigError("pairs= goes with two models")
    if cosine is None and out is None:  # a question alone writes nothing
        out = default_file(_title(model, options), "floor.json")
    if out and not replace:
        check_absent(out)
    made, _ = _side(model, text, options, is_question=not out)
    files = [write_file(out, made.to_json())] if out else []
    if cosine is not None:
        return Document(answer(made, cosine), files=files)
    return Document(tables={"floor": table(made)}, files=files)


Side = tuple[Floor, Encoder | None]


def _title(model: str, options: str) -> str:
    path = user_path(model)
    return path.stem if path.suffix in SUFFIXES else Experiment(configured(model, options=options)).title


def _side(model: str, text: str, options: str, *, is_question: bool) -> Side:
    """The floor of what stands for a model, and its encoder where it is one."""
    path = user_path(model)
    if path.suffix == ".json" and path.is_file():
        return Floor.load(path), None
    if path.suffix in SUFFIXES:
        return floor_of_vectors(path), None
    texts = [word.strip() for word in text.split(",") if word.strip()]
    by_domain = {Path(one).stem: one for one in texts}
    if len(by_domain) < len(texts):
        raise ConfigError(f"text={text}: two files have one name, by which domains are known; rename one")
    encoder, every, title = domain_sentences(model, by_domain if len(texts) > 1 else text or None, options)
    label = ", ".join(every) if text or encoder.corpus is not None else EMBEDDED
    return floor_of_domains(encoder, every, title, label, is_question=is_question), encoder


def floor_of_vectors(file: Path) -> Floor:
    """The floor of vectors in a file."""
    with light_errors():
        x = read_matrix(file)
    if x is None:
        raise DataError(f"{file} holds no vectors of texts (n, dim)")
    return replace(Floor.of_vectors(x), title=file.stem, text=file.name)


def answer(floor: Floor, cosine: float) -> list[str]:
    """Whether the cosine is high: a line for sentences, pooled in the model's own way, and one for words."""
    lines = [f"Is a cosine of {cosine:g} high in {floor.title}, layer {floor.layers[-1]}, the last?"]
    for kind in _spoken(floor):
        low, high = floor.domain_range(cosine, pooling=kind)
        share = floor.probability(cosine, pooling=kind)
        verdict = "no" if low > 0.05 else "yes, very" if high < 0.01 else "yes" if high <= 0.05 else "not surely"
        reach = f"{share:.1%} of unrelated pairs reach it ({low:.1%} to {high:.1%} by kind of text and error)"
        if share <= TAILS[-1]:
            reach = f"at most {max(high, TAILS[-1]):.2%} of unrelated pairs reach it"
        lines.append(f"- between {_pairs(kind)}: {verdict}; {reach}")
    return [*lines, f"Of {floor.text}: another kind of text may have another floor, and text= measures yours."]


def _spoken(floor: Floor) -> list[str]:
    """The pooling of sentences that is the model's own, and words."""
    return sorted(floor.kinds[:2], key=lambda kind: kind == WORDS)


def _pairs(kind: str) -> str:
    return kind if kind == WORDS else "sentences"


def high_cosines(floor: Floor) -> list[str]:
    """The cosines that few unrelated pairs reach in the last layer, a line for sentences and one for words."""
    lines = []
    for kind in _spoken(floor):
        five, one = (floor.threshold(share, pooling=kind) for share in (0.05, 0.01))
        reach = f"5% reach a cosine of {five:.2f} in layer {floor.layers[-1]}, 1% {one:.2f}"
        lines.append(f"of unrelated {_pairs(kind)} {reach} ({floor.text})")
    return lines


def table(floor: Floor) -> Table:
    """Sentences by the model's own pooling, and words, in some layers."""
    import pandas as pd

    shares = {0.5: "median", 0.05: "5% reach", 0.01: "1% reach"}
    rows = []
    for kind in floor.kinds:
        for layer in floor.layers:
            here: dict[str, Any] = {"layer": layer, "pooling": kind}
            cosines = {f"exceeded_by_{p:g}": floor.threshold(p, **here) for p in shares}
            errors = {"held_out": floor.held_out_error(**here), "domains": floor.domain_error(**here)}
            rows.append({"kind": kind, **here, **cosines, **errors})
    frame = pd.DataFrame(rows).drop(columns="pooling")
    columns = ["pairs of", "layer", *shares.values(), "error, held out", "in one domain"]
    shown = evenly_spaced(floor.layers, MOST)
    cells = [
        [
            row["kind"], str(row["layer"]),
            *("-" if np.isnan(row[key]) else f"{row[key]:.3f}" for key in frame.columns[2:]),
        ]
        for row in rows if row["kind"] in _spoken(floor) and row["layer"] in shown
    ]  # fmt: skip
    notes = [
        f"text: {floor.text}",
        "errors: of a probability up to .1, at most, on sentences that it wasn't fitted to, and in a single domain",
    ]
    return Table(f"Cosines of unrelated pairs, {floor.title}", frame, columns, cells, notes)


def _carry(sides: Sequence[Side], cosine: float, pairs: Path | None) -> Document:
    """The cosine of the first in the second, within domains and across, and what it costs in recall."""
    import pandas as pd

    (here, one), (there, two) = sides
    found = {"in one kind of text" if len(here.domains) > 1 else "": here.carry(there, cosine)}
    if here.across is not None and there.across is not None:
        found["across kinds of text"] = here.carry(there, cosine, across=True)
    lines = [f"A cosine of {cosine:g} in {here.title}, of unrelated sentences of {here.text}, is in {there.title}:"]
    lines += [f"- {f'{where}: ' * bool(where)}{said(carried)}" for where, carried in found.items()]
    rows = [{"pairs": where, **asdict(carried)} for where, carried in found.items()]
    tables = {"carried": Table("Carried", pd.DataFrame(rows))}
    within = next(iter(found.values()))
    if pairs and not within.reason:
        if one is None or two is None:
            raise ConfigError("pairs=: what is found of them needs two models, which can read them")
        recalls = recall((one, two), (cosine, within.cosine), pairs)
        (a, b), (low, high) = recalls["found"], recalls["difference"]
        change = f"{a:.1%} were found ({low:+.1%} to {high:+.1%})"
        lines.append(f"Of the related pairs of {pairs.name} it finds {b:.1%} where {change}.")
        tables["recall"] = Table("Recall", pd.DataFrame([{"first": a, "other": b, "low": low, "high": high}]))
    if not all(carried.reason for carried in found.values()):
        lines.append("It holds for text of this kind, and text= takes yours.")
    return Document(lines, tables)


def recall(
    encoders: tuple[Encoder, Encoder], cosines: tuple[float, float], file: Path
) -> Mapping[str, tuple[float, float]]:
    """The shares of related pairs that reach each model's cosine (`found`), and the 95% interval of what the second
    has above the first (`difference`)."""
    corpus, _ = own_corpus(file)
    most = max(pair.gold for pair in corpus.pairs)
    related = np.array([(pair.first, pair.second) for pair in corpus.pairs if pair.gold >= RELATED * most])
    reached = []
    for encoder, cosine in zip(encoders, cosines, strict=True):
        x = text_layers(encoder, [sentence.text for sentence in corpus.sentences])[-1]
        reached.append(cosines_of(x, *related.T) >= cosine)
    gains = reached[1].astype(np.float64) - reached[0]
    draws = resamples([len(gains)], REPLICATES, np.random.default_rng(0))
    low, high = interval(np.concatenate([counts @ gains / len(gains) for counts in draws])[None])
    return {"found": (reached[0].mean(), reached[1].mean()), "difference": (low.item(), high.item())}
