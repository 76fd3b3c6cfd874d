"""The atlas: known models over three texts, a row of `docs/atlas.md` for each card in `docs/atlas/`.

`python -m docs.numbers.atlas` writes the page from the cards that `ctxexp card` wrote, of models that others can have.
Names of MODELS behind it, or `all`, are measured first, with the commands that their rows show.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from ctxexp.errors import DataError
from ctxexp.results import RunInfo
from docs.numbers.marked import write_marked
from docs.numbers.part import ONE_TRAINING_RUN, ROOT, markdown, without_leading_zero

PAGE, FOLDER, MARK = "docs/atlas.md", "docs/atlas", "atlas"
MINILM = "sentence-transformers/all-MiniLM-L6-v2"
MODELS = {  # file: its title and what is typed of the model
    "bert-mini": ("bert-mini", "bert"),
    "bert-mini-untrained": ("bert-mini, untrained", "bert weights=untrained"),
    "gpt2-mini": ("gpt2-mini", "gpt2"),
    "gpt2-mini-untrained": ("gpt2-mini, untrained", "gpt2 weights=untrained"),
    "elmo-mini": ("elmo-mini", "elmo"),
    "elmo-mini-untrained": ("elmo-mini, untrained", "elmo weights=untrained"),
    "all-minilm-l6-v2": ("all-MiniLM-L6-v2", MINILM),
    "all-minilm-l6-v2-untrained": ("all-MiniLM-L6-v2, untrained", f"bert model.checkpoint={MINILM} weights=untrained"),
    "smollm2-135m-instruct": ("SmolLM2-135M-Instruct, 4 bit", "smollm2"),
    "glove-6b-50d": ("GloVe 6B 50d", "glove"),
    "random-words": ("a random vector a word", "random_words"),
}
OPTIONS = "bootstrap=200"
CONTEXT, RANGE = "contextuality/raw", ("contextuality/lowest", "contextuality/highest")
CURVES = {  # that each row has, and how a column is called
    CONTEXT: "contextuality",
    "self_similarity/raw": "self-similarity",
    "anisotropy/mean_cosine": "chance: cosine of unrelated words",
    "intra_sentence_similarity/size_matched_adjusted": "intra-sentence similarity, less its chance",
    "max_explainable_variance/adjusted": "MEV, less its chance",
}
HEADS = [*CURVES.values()]
HEADS.insert(1, "its variants")
FEWEST_RESAMPLES = 100
MOST = 1 + 1e-4  # of a cosine or a share, rounded
Values = list[float | None]


class Text(NamedTuple):
    """One of the atlas' texts: what is typed for it, the digest of its sentences and words, and its title."""

    typed: str
    fingerprint: str
    title: str


TEXTS = {
    "embedded": Text("dataset=polysemy", "e5178d12e7fcdb665339b55c52ea29b9", "the embedded sentences"),
    "sts-b": Text("dataset=sts_b", "13478aac61790cf18ca8870dec438633", "STS-B"),
    "semcor": Text("dataset=semcor_sample", "595a8cf8076da3019965d40c2a796cb2", "SemCor"),
}


class Curve(BaseModel):
    """Values by layer, and the ends of their 95% intervals where there are any."""

    model_config = ConfigDict(extra="forbid")
    value: Values
    low: Values | None = None
    high: Values | None = None

    def at(self, layer: int) -> list[float | None]:
        """Value, low and high in this layer."""
        return [values[layer] if values else None for values in (self.value, self.low, self.high)]


class Row(BaseModel):
    """The schema of a file in `docs/atlas/`."""

    model_config = ConfigDict(extra="forbid")
    format: Literal[1]
    title: Annotated[str, Field(min_length=1, max_length=60, pattern=r"^[^|`<>\n]+$")]
    command: str
    findings: list[str]
    warnings: list[str]
    extremes: list[str]
    advice: list[str] = []
    sinks: list[str]
    controls: list[str]
    curves: dict[str, Curve]
    run: RunInfo

    @property
    def text(self) -> str:
        """The text's name in the atlas."""
        return next(name for name, text in TEXTS.items() if text.fingerprint == self.run.corpus.fingerprint)

    @model_validator(mode="after")
    def _check(self) -> Row:
        info, words = self.run, self.command.split()
        if words[:2] != ["ctxexp", "card"] or any(re.match(r"[/~.\\]|[A-Za-z]:\\", w.split("=")[-1]) for w in words):
            raise ValueError(
                f"{self.command!r}: expected ctxexp card 'MODEL key=value', without a path on your machine"
            )
        if info.corpus.fingerprint not in {text.fingerprint for text in TEXTS.values()}:
            typed = " or ".join(text.typed for text in TEXTS.values())
            raise ValueError(f"the text is {info.corpus.name!r}, none of the atlas'; expected a run with {typed}")
        if (info.control, info.transform.name, info.seed) != ("none", "none", 0):
            raise ValueError("expected control=none, transform=none and seed=0, as they are by default")
        if info.bootstrap < FEWEST_RESAMPLES:
            raise ValueError(f"{info.bootstrap} resamples; expected bootstrap={FEWEST_RESAMPLES} or more")
        if absent := {*CURVES, *RANGE} - set(self.curves):
            raise ValueError(f"no curve {min(absent)}; expected the measures {', '.join(CURVES)}")
        for key in CURVES:
            _check_curve(key, self.curves[key], info.model.n_layers)
        return self


def _check_curve(key: str, curve: Curve, n_layers: int) -> None:
    if {len(values) for values in (curve.value, curve.low, curve.high) if values is not None} != {n_layers}:
        raise ValueError(f"{key}: {len(curve.value)} values; the model has {n_layers} layers")
    most = float("inf") if key == CONTEXT else MOST
    for layer in range(n_layers):
        value, low, high = curve.at(layer)
        known = [v for v in (low, value, high) if v is not None]
        if not all(-MOST <= v <= most for v in known) or known != sorted(known):
            raise ValueError(f"{key}, layer {layer}: {known}; expected low <= value <= high, from -1 to {most:.0f}")


def read_row(path: Path) -> Row:
    """The row in a file. Raises DataError, which says what is wrong with it."""
    if not re.fullmatch(r"[a-z0-9.-]+", path.stem):
        raise DataError(f"{path}: expected a name of small letters, digits, dots and hyphens")
    try:
        return Row.model_validate_json(path.read_bytes())
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the card"
        raise DataError(f"{path}: {where}: {first['msg']}; a row is the card.json of `ctxexp card`") from error


def rows(root: Path = ROOT) -> dict[str, Row]:
    """By the files' names. Raises DataError for a file that is no row."""
    found = {path.stem: read_row(path) for path in sorted((root / FOLDER).glob("*.json"))}
    seen: dict[tuple[str, str], str] = {}
    for name, row in found.items():
        if (other := seen.setdefault((row.title, row.text), name)) != name:
            raise DataError(f"{FOLDER}/{name}.json: {other}.json has {row.title!r} over {row.text} already")
    return found


def cell(row: Row, key: str, layer: int) -> str:
    """`.551 [.543, .558]`"""
    value, low, high = ("" if v is None else without_leading_zero(v) for v in row.curves[key].at(layer))
    return f"{value} [{low}, {high}]" if value and low and high else value


def cells(row: Row, layer: int) -> list[str]:
    """A layer's cells under HEADS, with intervals."""
    return with_range(row, layer, [cell(row, key, layer) for key in CURVES])


def with_range(row: Row, layer: int, cells: list[str]) -> list[str]:
    """A layer's cells of CURVES with the range of contextuality's variants behind the first."""
    ends = [row.curves[key].value[layer] for key in RANGE]
    cells.insert(1, " to ".join(without_leading_zero(end, 2) for end in ends if end is not None))
    return cells


def table(found: dict[str, Row]) -> str:
    """A row a card, by model and text."""
    lines = []
    for name, row in sorted(found.items(), key=lambda item: (item[1].title, item[1].text)):
        common = {*OPTIONS.split(), TEXTS[row.text].typed}
        typed = " ".join(word for word in shlex.split(row.command)[2].split() if word not in common)
        text = ", ".join(filter(None, [row.text, row.run.mix.mark]))
        link = f"[`{typed}`](atlas/{name}.json)"
        first, *others = (cell(row, key, -1) for key in CURVES)
        last = [first, *(text.partition(" ")[0] for text in others)]
        lines.append([row.title, text, *with_range(row, -1, last), link])
    head = ["model", "text", *HEADS, "command and card"]
    return f'<div class="sortable" markdown="1">\n\n{markdown(head, lines)}\n\n</div>\n\n{ONE_TRAINING_RUN}.'


def card_page(row: Row) -> str:
    """One card as a page of the site."""
    model = row.run.model
    layers = [[str(i), *cells(row, i)] for i in range(model.n_layers)]
    facts = {k: v for k, v in model.details.items() if k in ("checkpoint", "revision", "content_hash")}
    about = [f"layers {model.n_layers}", f"width {model.dim}"]
    about += [f"{row.run.corpus.sentences:,} sentences", f"ctxexp {row.run.version}"]
    parts = [
        "---\nsearch:\n  exclude: true\n---",
        f"# {row.title} over {TEXTS[row.text].title}",
        f"```\n{row.command}\n```",
        "; ".join([*about, *(f"{key.replace('_', ' ')} {value}" for key, value in facts.items())]) + ".",
    ]
    lists = {
        "In words": row.findings,
        "Before you use these numbers": row.warnings,
        "Highest and lowest layers": row.extremes,
        "Sinks": row.sinks,
        "Negative controls (no context, or no training)": row.controls,
    }
    for title, lines in lists.items():
        if lines:
            parts += [f"**{title}**", "\n".join(f"- {line}" for line in lines)]
    parts += ["**By layer** (layer 0 is the input layer)", markdown(["layer", *HEADS], layers)]
    return "\n\n".join([*parts, "[All models](../atlas.md)"]) + "\n"


def command(model: str, text: str) -> list[str]:
    """What makes the card of one of MODELS over one of TEXTS."""
    title, typed = MODELS[model]
    return ["ctxexp", "card", f"{typed} {TEXTS[text].typed} {OPTIONS}", f"title={title}"]


def make(model: str, text: str) -> None:
    """Measure, and keep the card. Raises CalledProcessError where the command fails."""
    with TemporaryDirectory() as folder:
        print(shlex.join(command(model, text)), flush=True)
        typed = [sys.executable, "-m", *command(model, text), f"out={folder}"]
        subprocess.run(typed, check=True, stdout=subprocess.DEVNULL)
        read_row(Path(folder) / "card.json")
        (Path(folder) / "card.json").replace(ROOT / FOLDER / f"{model}.{text}.json")


if __name__ == "__main__":
    for name in MODELS if "all" in sys.argv else sys.argv[1:]:
        for text in TEXTS:
            make(name, text)
    write_marked(ROOT / PAGE, MARK, table(rows()))
