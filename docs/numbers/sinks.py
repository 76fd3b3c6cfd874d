"""The sinks of five models, of their untrained twins, and what leaving them out does, into the README of
ctxexp-compare: `python -m docs.numbers.sinks`."""

from __future__ import annotations

import logging
from typing import Any

import torch
from ctxexp_compare import Sinks, sinks
from ctxexp_compare.attention_sinks.sinks import effects
from transformers import PreTrainedTokenizerFast

import ctxexp
from ctxexp.command import Experiment, configured
from docs.numbers.marked import write_marked
from docs.numbers.part import ROOT, markdown

MODELS = ("smollm2", "smollm2 model.prefix=bos", "minilm", "bert", "gpt2")
HEAD = ["model", "place", "pieces", "by norm", "by attention", "in layers", "drawn to in", "norm / median", "drawn"]


def place_rows(label: str, found: Sinks) -> list[list[str]]:
    """A row a kind of place that has sinks; one for all where none has."""
    frame = found.frame
    some = frame[frame["by_norm"] + frame["by_attention"] > 0]
    if some.empty:
        none = [f"{len(found.place):,}", "0", "0", "-", "-", f"{found.ratios.max():.1f}"]
        return [[label, "any", *none, f"{frame['most_attention'].max():.2f}"]]
    return [
        [label, row.kind, f"{row.pieces:,}", f"{row.by_norm:,}", f"{row.by_attention:,}", row.layers_by_norm,
         row.layers_by_attention, f"{row.largest_ratio:.1f}", f"{row.most_attention:.2f}"]
        for row in some.itertuples()
    ]  # fmt: skip


def effect_table(encoder: ctxexp.Encoder, own: Sinks) -> str:
    """A row a curve: the layer that leaving sinks out changes most."""
    measured = effects(encoder, own, options=["min_contexts=3"])
    most = measured.loc[measured.groupby("metric")["difference"].apply(lambda of: of.abs().idxmax())]
    rows = [
        [row["metric"], str(row["layer"]), f"{row['with']:.3f}", f"{row['without']:.3f}", f"{row['difference']:+.3f}"]
        for _, row in most.iterrows()
    ]
    return markdown(["curve, less chance where it has a level", "layer", "with sinks", "without", "change"], rows)


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    all_rows, tables = [], []
    for words in MODELS:
        name, *args = words.split()
        encoder: Any = Experiment(configured(name, None, args)).encoder
        own = sinks(encoder, sentences=60)
        all_rows += place_rows(words, own)
        tables += [effect_table(encoder, own)] if words == MODELS[0] else []
        if not args:  # the same architecture with random weights, and the same tokenizer
            torch.manual_seed(0)
            pieces = PreTrainedTokenizerFast(tokenizer_object=encoder.tokenizer)
            twin = ctxexp.from_transformers(type(encoder.model)(encoder.model.config), pieces, name="twin")
            all_rows += place_rows(f"{name}, untrained", sinks(twin, sentences=60))
    write_marked(
        ROOT / "plugins" / "ctxexp-compare" / "README.md", "sinks", f"{markdown(HEAD, all_rows)}\n\n{tables[0]}"
    )
