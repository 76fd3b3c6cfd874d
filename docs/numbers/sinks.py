"""The sinks of SmolLM2 and MiniLM, of their untrained twins, and what leaving them out does, into the README of
ctxexp-compare: `python -m docs.numbers.sinks`."""

from __future__ import annotations

import logging
from typing import Any

import pandas as pd
import torch
from ctxexp_compare import Sinks, sinks
from ctxexp_compare.attention_sinks.mask import effects
from transformers import PreTrainedTokenizerFast

import ctxexp
from ctxexp.command import Built, configured
from docs.numbers.marked import write_marked
from docs.numbers.part import ROOT, markdown

README = ROOT / "plugins" / "ctxexp-compare" / "README.md"
SENTENCES = 60
MODELS = ("smollm2", "smollm2 model.prefix=bos", "minilm", "bert", "gpt2")


def place_rows(label: str, found: Sinks) -> list[list[str]]:
    """A row a kind of place that has sinks; one for all where none has."""
    frame = found.frame
    some = frame[frame["by_norm"] + frame["by_attention"] > 0]
    if some.empty:
        return [[label, "any", f"{len(found.place):,}", "0", "0", "-", "-", f"{found.ratios.max():.1f}",
                 f"{frame['most_attention'].max():.2f}"]]  # fmt: skip
    return [
        [label, row.kind, f"{row.pieces:,}", f"{row.by_norm:,}", f"{row.by_attention:,}", row.layers_by_norm,
         row.layers_by_attention, f"{row.largest_ratio:.1f}", f"{row.most_attention:.2f}"]
        for row in some.itertuples()
    ]  # fmt: skip


def place_table(rows: list[list[str]]) -> str:
    """Sinks by model and place."""
    columns = "model,place,pieces,by norm,by attention,in layers,drawn to in,norm / median,drawn"
    return markdown(columns.split(","), rows)


def curve_table(measured: pd.DataFrame) -> str:
    """A row a curve: the layer that changes most."""
    most = measured.loc[measured.groupby("metric")["difference"].apply(lambda own: own.abs().idxmax())]
    rows = [
        [row["metric"], f"{row['layer']}", f"{row['with']:.3f}", f"{row['without']:.3f}", f"{row['difference']:+.3f}"]
        for _, row in most.iterrows()
    ]
    return markdown(["share of the room above chance", "layer", "with sinks", "without", "change"], rows)


def untrained_twin(encoder: Any) -> ctxexp.Encoder:
    """The same architecture with random weights, and the same tokenizer."""
    torch.manual_seed(0)
    twin = type(encoder.model)(encoder.model.config)
    return ctxexp.from_transformers(twin, PreTrainedTokenizerFast(tokenizer_object=encoder.tokenizer), name="twin")


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    all_rows: list[list[str]] = []
    tables = []
    for words in MODELS:
        name, *args = words.split()
        encoder = Built(configured(name, None, args)).encoder
        own = sinks(encoder, sentences=SENTENCES)
        all_rows += place_rows(words, own)
        if words == MODELS[0]:
            tables.append(curve_table(effects(encoder, own, options=["min_contexts=3"])))
        if not args:
            all_rows += place_rows(f"{name}, untrained", sinks(untrained_twin(encoder), sentences=SENTENCES))
        print(*all_rows, sep="\n", flush=True)
    write_marked(README, "sinks", f"{place_table(all_rows)}\n\n{tables[0]}")
