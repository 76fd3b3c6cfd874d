"""The atlas: known models over three texts, a row of `docs/atlas.md` for each card in `docs/atlas/`.

`python -m docs.numbers.atlas` writes the page from the cards. Names of MODELS behind it, or `all`, are measured first,
with the commands that their rows show.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from ctxexp.errors import DataError
from docs.numbers.atlas_row import HEADLINES, TEXTS, Row, cell, lowest, read_row
from docs.numbers.marked import write_marked
from docs.numbers.part import ONE_TRAINING_RUN, ROOT, markdown

PAGE = "docs/atlas.md"
FOLDER = "docs/atlas"
MARK = "atlas"
CONTROLS = "Negative controls (no context, or no training)"
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
    "all-mpnet-base-v2": ("all-mpnet-base-v2", "sentence-transformers/all-mpnet-base-v2"),
    "smollm2-135m-instruct": ("SmolLM2-135M-Instruct, 4 bit", "smollm2"),
    "glove-6b-50d": ("GloVe 6B 50d", "glove"),
    "random-words": ("a random vector a word", "random_words"),
}
OPTIONS = "metric=[anisotropy,self_similarity,intra_sentence_similarity,max_explainable_variance] bootstrap=200"
SELF_SIMILARITY = "self_similarity/share_of_room"
HEAD = [
    *("model", "text", "layers × width", *(title for _, title in HEADLINES)),
    *("lowest (layer)", "resamples", "command and card"),
]


def command(model: str, text: str) -> list[str]:
    """What makes the card of one of MODELS over one of TEXTS."""
    title, typed = MODELS[model]
    return ["ctxexp", "card", f"{typed} {TEXTS[text].typed} {OPTIONS}", f"title={title}"]


def make(model: str, text: str, root: Path = ROOT) -> None:
    """Measure, and keep the card. Raises CalledProcessError where the command fails."""
    with TemporaryDirectory() as folder:
        typed = [sys.executable, "-m", *command(model, text), f"out={folder}"]
        print(shlex.join(typed[2:-1]), flush=True)
        subprocess.run(typed, check=True, stdout=subprocess.DEVNULL)
        read_row(Path(folder) / "card.json")
        (Path(folder) / "card.json").replace(root / FOLDER / f"{model}.{text}.json")


def rows(root: Path = ROOT) -> dict[str, Row]:
    """By the files' names. Raises DataError for a file that is no row."""
    found = {path.stem: read_row(path) for path in sorted((root / FOLDER).glob("*.json"))}
    seen: dict[tuple[str, str], str] = {}
    for name, row in found.items():
        if (other := seen.setdefault((row.title, row.text), name)) != name:
            raise DataError(f"{FOLDER}/{name}.json: {other}.json has {row.title!r} over {row.text} already")
    return found


def table(found: dict[str, Row]) -> str:
    """A row a card, by model and text."""
    lines = [_line(name, row) for name, row in sorted(found.items(), key=lambda item: (item[1].title, item[1].text))]
    return f'<div class="sortable" markdown="1">\n\n{markdown(HEAD, lines)}\n\n</div>\n\n{ONE_TRAINING_RUN}.'


def card_page(row: Row) -> str:
    """One card as a page of the site."""
    layers = [[str(i), *(cell(row, key, i) for key, _ in HEADLINES)] for i in range(row.run.model.n_layers)]
    facts = {k: v for k, v in row.run.model.details.items() if k in ("checkpoint", "revision", "content_hash")}
    about = [f"{row.run.corpus.sentences:,} sentences", f"ctxexp {row.run.version}"]
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
    }
    for head, lines in {**lists, "Sinks": row.sinks, CONTROLS: row.controls}.items():
        if lines:
            parts += [f"**{head}**", "\n".join(f"- {line}" for line in lines)]
    parts += ["**By layer** (layer 0 is the input layer)", markdown(["layer", *(t for _, t in HEADLINES)], layers)]
    return "\n\n".join([*parts, "[All models](../atlas.md)"]) + "\n"


def write(root: Path = ROOT) -> None:
    """Write the page's table."""
    write_marked(root / PAGE, MARK, table(rows(root)))


def _line(name: str, row: Row) -> list[str]:
    model, last = row.run.model, row.run.model.n_layers - 1
    common = {*OPTIONS.split(), TEXTS[row.text].typed}
    typed = " ".join(word for word in shlex.split(row.command)[2].split() if word not in common)
    return [
        *(row.title, ", ".join(filter(None, [row.text, row.run.mix.mark])), f"{model.n_layers} × {model.dim}"),
        *(cell(row, key, last) for key, _ in HEADLINES),
        *(lowest(row, SELF_SIMILARITY), str(row.run.bootstrap), f"[`{typed}`](atlas/{name}.json)"),
    ]


def main(names: list[str]) -> int:
    """The exit status."""
    if unknown := [name for name in names if name not in {*MODELS, "all"}]:
        print(f"error: no model {unknown[0]!r}; expected all, {', '.join(MODELS)}", file=sys.stderr)
        return 2
    failed = []
    for model in MODELS if "all" in names else names:
        for text in TEXTS:
            try:
                make(model, text)
            except subprocess.CalledProcessError as error:  # the command has said why
                failed.append(f"{model} over {text} (exit status {error.returncode})")
    write()
    for line in failed:
        print(f"failed: {line}", file=sys.stderr)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
