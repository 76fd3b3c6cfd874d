"""Files that name sizes which no file has, and parts of splits: refused within two seconds and without the memory."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from bounded import bounded

from ctxexp import CtxexpError

from . import Silent
from .absurd import (
    Change,
    archive_arrays,
    config_sizes,
    elmo_datasets,
    elmo_options,
    gguf_counts,
    gguf_tensors,
    gguf_values,
    index_sizes,
    pick,
    result_layers,
    result_numbers,
    safetensors_head,
    text_lines,
    vector_headers,
    vector_lines,
)
from .inputs import (
    Maker,
    Reader,
    copy_of,
    differences,
    make_checkpoint,
    make_gguf,
    make_results,
    make_text,
    read_checkpoint,
    read_gguf,
    read_results,
    read_text,
)


class SizedInput(NamedTuple):
    """A kind of input: what makes an intact one in a folder, what reads it, and what spoils its sizes."""

    make: Maker
    read: Reader
    changes: tuple[Change, ...]


def cases(seed: int, count: int, folder: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """Every kind of input in turn, each with its changes in turn, at drawn places and of drawn sizes."""
    for place in range(count):
        rng, (turn, at) = np.random.default_rng([seed, place]), divmod(place, len(INPUTS) + 1)
        if not at:
            name, split = str(pick(rng, FACTORIES)), str(pick(rng, SPLITS))
            yield f"{name}: {split!r}", lambda name=name, split=split, own=folder / str(place): parted(name, split, own)
            continue
        kind = list(INPUTS)[at - 1]
        changes = INPUTS[kind].changes
        change = changes[turn % len(changes)]
        name = f"{kind}: {change.__name__.replace('_', ' ')}"
        yield name, lambda kind=kind, change=change, rng=rng, own=folder / str(place): tried(kind, change, rng, own)


def tried(kind: str, change: Change, rng: np.random.Generator, own: Path) -> None:
    """Spoil a copy and read it: it is refused, or gives what the intact one gives."""
    make, read, _ = INPUTS[kind]
    with copy_of(kind, make, read, own) as expected:
        said = change(own, rng)

        def attempt() -> None:
            if other := differences(read(own), expected):
                raise Silent(f"{said}: read, with other {other}")

        bounded(attempt)


FACTORIES = ("huggingface file", "huggingface folder", "sts", "sts_b", "sick_r", "sts_2012_2016")
SPLITS = ("train[:5]", "train[10%:]", "train[", "train+test", "test[:1]", "[:5]", "%", "Train", "validation", "tests",
          "train ", "", "all of it", "../train", "train\n", "0", "train[:99999999999999999999]")  # fmt: skip


def parted(name: str, split: str, folder: Path) -> None:
    """Ask for a part, or a split that isn't there, of data on disk: refused in a line that names the split."""
    folder.mkdir()
    (folder / "rows.jsonl").write_text('{"text": "the river"}\n' * 9)

    def ask() -> None:
        factory(name.split()[0])(path=str(folder / "rows.jsonl" if name.endswith("file") else folder), split=split)
        raise Silent(f"split {split!r} was taken")

    try:
        bounded(ask)
    except CtxexpError as error:
        if "split" not in str(error) or "\n" in str(error):
            raise Silent(f"no line about the split: {error}") from None
        raise


def factory(name: str) -> Callable[..., object]:
    """The data set of that name; that of a plugin is taken from its folder, where it is not installed."""
    if name == "huggingface":
        plugin = str(Path(__file__).parents[2] / "plugins" / "ctxexp-scale")
        if plugin not in sys.path:
            sys.path.append(plugin)
        from ctxexp_scale.huggingface import huggingface

        return huggingface
    from ctxexp.datasets import sts

    return getattr(sts, name)


INPUTS: dict[str, SizedInput] = {
    "results": SizedInput(make_results, read_results, (result_layers, result_numbers, archive_arrays)),
    "elmo": SizedInput(make_checkpoint("elmo"), read_checkpoint("elmo"), (elmo_datasets, elmo_options)),
    "vectors": SizedInput(
        make_checkpoint("words"), read_checkpoint("words"), (vector_headers, safetensors_head, vector_lines)
    ),
    "text": SizedInput(make_text, read_text, (text_lines,)),
    "transformer": SizedInput(
        make_checkpoint("bert"), read_checkpoint("bert"), (config_sizes, safetensors_head, index_sizes)
    ),
    "gguf": SizedInput(make_gguf, read_gguf, (gguf_values, gguf_tensors, gguf_counts)),
}
