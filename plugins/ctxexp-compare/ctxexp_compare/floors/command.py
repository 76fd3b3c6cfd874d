"""`ctxexp floor MODEL`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ctxexp.command import Experiment, configured, registry
from ctxexp.datasets import read_table, user_path
from ctxexp.errors import ConfigError, DataError, error_text
from ctxexp.report import Document, Table, check_absent
from ctxexp_compare.floors.fit import TAILS
from ctxexp_compare.floors.floor import Floor
from ctxexp_compare.floors.make import domain_sentences, floor_of_domains
from ctxexp_compare.floors.sample import WORDS, is_word
from ctxexp_compare.pins.make import default_file
from ctxexp_compare.space import evenly_spaced

MOST = 5  # layers that are printed, evenly spaced


def floor(
    model: str = "",
    *,
    cosine: float | None = None,
    length: int | None = None,
    out: Path | None = None,
    vectors: Path | None = None,
    pairs: Path | None = None,
    options: str = "",
    text: str = "",
    bert_score: Path | None = None,
    replace: bool = False,
) -> Document:
    """Measure what cosines unrelated words and sentences have in each layer: what a high one is.

    In Python: `ctxexp_compare.Floor.load("minilm.floor.json").probability(0.83, length=(12, 20))`.

    model: a model, quoted with its words: "minilm dtype=bfloat16", or with cosine= the file of its floor
    cosine: is it high? how many of unrelated pairs reach it, in the last layer
    length: words of the sentences whose cosine it is; null: the text's middle length
    out: the file; null: MODEL.floor.json, or none where cosine= asks
    vectors: in the place of a model, sentences' vectors (n, dim) in a .npy file; text= has the sentences, one a line
    pairs: in the place of a model, a table of unrelated pairs with a column cosine, and may be length_a and length_b
    options: further arguments for the model
    text: sentences: a file, a folder or a data set; several by comma are domains, in each of which pairs are drawn;
        empty: the embedded ones, of ten registers
    bert_score: a file of bert_score's baselines too, of up to 1,000 pairs
    example: ctxexp floor bert cosine=0.83
    """
    if cosine is not None and not -1 <= cosine <= 1:
        raise ConfigError(f"cosine={cosine:g}: expected -1 to 1")
    if cosine is not None and model and (held := user_path(model)).is_file():
        return Document(answer(Floor.load(held), cosine, length))
    if sum(map(bool, (model, vectors, pairs))) != 1:
        raise ConfigError("floor takes a model, vectors=FILE or pairs=FILE: one of them")
    if bert_score and not model:
        raise ConfigError("bert_score=: its baselines need a model, which vectors= and pairs= don't have")
    if cosine is None and out is None:  # a question alone writes nothing
        title = (vectors or pairs or Path()).stem or Experiment(configured(model, options=options)).title
        out = default_file(title, "floor.json")
    files = [path for path in (out, bert_score) if path]
    for path in () if replace else files:
        check_absent(path)
    if file := vectors or pairs:
        floor = floor_of_vectors(file, text) if vectors else floor_of_pairs(file)
        if out:
            floor.save(out)
        lines = answer(floor, cosine, length) if cosine is not None else []
        return Document(lines, {"floor": table(floor)}, files=files)
    texts = [word.strip() for word in text.split(",") if word.strip()]
    by_domain = {Path(one).stem: one for one in texts}
    if len(by_domain) < len(texts):
        raise ConfigError(f"text={text}: two files have one name, by which domains are known; rename one")
    encoder, every, title = domain_sentences(model, by_domain if len(texts) > 1 else text or None, options)
    label = ", ".join(every) if text or encoder.corpus is not None else "embedded sentences"
    floor = floor_of_domains(encoder, every, title, label)
    if out:
        floor.save(out)
    if bert_score is not None:
        from ctxexp_compare.floors import bert_score as files_of

        files_of.write_baseline(bert_score, files_of.baseline(encoder, files_of.unrelated_texts(every, 0)))
    if cosine is not None:
        return Document(answer(floor, cosine, length), files=files)
    return Document(tables={"floor": table(floor)}, files=files)


def floor_of_vectors(file: Path, text: str) -> Floor:
    """The floor of vectors in a file, of the sentences of a text, one a line; without a text lengths don't count."""
    try:
        x = np.load(file, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise DataError(f"{file}: expected vectors (n, dim) in NumPy's .npy ({error_text(error)})") from None
    if not text:
        return replace(Floor.of_vectors(x, [1] * len(x)), title=file.stem, text=file.name)
    sentences = registry().find("dataset", "text").factory(path=text).sentences
    lengths = [max(1, sum(map(is_word, sentence.words))) for sentence in sentences]
    if len(lengths) != len(x):
        raise DataError(f"{file} has {len(x)} vectors, {text} has {len(lengths)} sentences: expected one of each")
    return replace(Floor.of_vectors(x, lengths), title=file.stem, text=Path(text).name)


def floor_of_pairs(file: Path) -> Floor:
    """The floor of the cosines of a table of pairs, with both lengths where it has them."""
    names = ["cosine", "length_a", "length_b"]
    try:
        rows = [row for _, row in read_table(file)]
        names = names if "length_a" in (rows or [{}])[0] else names[:1]
        cells = np.array([[float(row[name]) for name in names] for row in rows])
    except KeyError as error:
        raise DataError(f"{file}: no column {error}; it has {', '.join(rows[0])}") from None
    except (TypeError, ValueError) as error:
        raise DataError(f"{file}: expected numbers ({error_text(error)})") from None
    if not len(cells):
        raise DataError(f"{file}: no pairs")
    return replace(
        Floor.of_pairs(cells[:, 0], cells[:, 1:] if len(names) > 1 else None), title=file.stem, text=file.name
    )


def answer(floor: Floor, cosine: float, length: int | None) -> list[str]:
    """Whether the cosine is high: a line for words and one for sentences, pooled in the model's own way."""
    lines = [f"Is a cosine of {cosine:g} high in {floor.title}, layer {floor.layers[-1]}, the last?"]
    for kind in floor.kinds[:2]:
        size, pairs = length_and_description(floor, kind, length)
        low, high = sorted(floor.domain_range(cosine, length=size))
        share, five = floor.probability(cosine, length=size), floor.threshold(0.05, length=size)
        verdict = "no" if high > 0.05 else "yes, very" if high < 0.01 else "yes"
        reach = f"{share:.1%}" if share > TAILS[-1] else f"at most {share:.2%}"
        reach += f" ({low:.1%} to {high:.1%} by kind of text and error)" if high - low > 0.001 else ""
        lines.append(f"- between {pairs}: {verdict}; {reach} of unrelated pairs reach it, and 5% reach {five:.2f}")
        if not floor.separates(length=size):
            lines.append("  inseparable: half of one kind of text's unrelated pairs reach what 5% of another's do")
    return [*lines, f"Of {floor.text}: another kind of text may have another floor, and text= measures yours."]


def length_and_description(floor: Floor, kind: str, length: int | None = None) -> tuple[int | None, str]:
    """The length in words of the pairs that are spoken of, None where it isn't known or doesn't count; their name."""
    if kind == WORDS:
        return None, "words"
    if floor.lengths == (1, 1):  # vectors= without text=, pairs= without lengths
        return None, f"those of {floor.text}"
    size = length or round((floor.lengths[0] * floor.lengths[1]) ** 0.5)
    return size, f"sentences of {size} words"


def high_cosines(floor: Floor) -> list[str]:
    """The cosines that few unrelated pairs reach in the last layer, a line for words and one for sentences."""
    lines = []
    for kind in floor.kinds[:2]:
        size, pairs = length_and_description(floor, kind)
        five, one = (floor.threshold(share, length=size) for share in (0.05, 0.01))
        reach = f"5% reach a cosine of {five:.2f} in layer {floor.layers[-1]}, 1% {one:.2f}"
        lines.append(f"of unrelated {pairs} {reach} ({floor.text})")
    return lines


def table(floor: Floor) -> Table:
    """Words and the model's own pooling in some layers."""
    frame, (low, high) = floor.frame, floor.lengths
    shown = frame[frame["kind"].isin(floor.kinds[:2])]
    layers = evenly_spaced(floor.layers, MOST)

    def tells(row: Any) -> str:
        if len(floor.domains) < 2:
            return "-"
        return (
            "yes" if floor.separates(layer=row.layer, pooling=row.kind, length=(low * high) ** 0.5) else "inseparable"
        )

    cells = [
        [
            row.kind,
            str(row.layer),
            *("-" if np.isnan(row[key]) else f"{row[key]:.3f}" for key in frame.columns[2:]),
            tells(row),
        ]
        for _, row in shown[shown["layer"].isin(layers)].iterrows()
    ]
    columns = ["pairs of", "layer", "median", "5% reach", "1% reach", "error, held out", "in one domain", "5% tells"]
    sizes = f"sentences of {(low * high) ** 0.5:.0f} words, {low} to {high} are known; " if high > 1 else ""
    notes = [
        f"{sizes}text: {floor.text}",
        "errors: of a probability up to .1, at most, on sentences that it wasn't fitted to (of pairs=: on pairs, "
        "which may be of the same sentences, so that it is more), and in a single domain",
        "inseparable: half of one domain's unrelated pairs reach what 5% of another's do: no one cosine tells",
    ]
    return Table(f"Cosines of unrelated pairs, {floor.title}", frame, columns, cells, notes)
