"""`ctxexp sinks MODEL`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ctxexp.command import Experiment, configured
from ctxexp.report import Document, Table, check_absent
from ctxexp_compare.attention_sinks.find import SENTENCES
from ctxexp_compare.attention_sinks.find import sinks as find_sinks
from ctxexp_compare.attention_sinks.sinks import FACTOR, METRICS, SHARE, Sinks, effects

if TYPE_CHECKING:
    import pandas as pd

MOST_TOKENS = 5  # of a kind that are named


def sinks(
    model: str,
    *,
    text: str = "",
    options: str = "",
    sentences: int = SENTENCES,
    factor: float = FACTOR,
    share: float = SHARE,
    min_contexts: int = 3,
    mask: Path | None = None,
    out: Path | None = None,
    replace: bool = False,
) -> Document:
    """Find a model's sinks wherever they stand, by norm and by attention, and what leaving them out does to each curve.

    model: a model of transformers, quoted with its words: "gpt2", "smollm2 model.prefix=bos"
    text: sentences: a file, a folder or a data set; empty: the embedded ones
    options: further arguments for the model
    sentences: how many are read at most, the first of the text
    factor: times a layer's median norm from which on a piece is a sink
    share: attention drawn beyond an even share from which on it is one, mean over heads and the pieces that see it
    min_contexts: distinct sentences that a word needs in these
    mask: an .npz with every piece's sentence, place, characters and flags, for any tool that reads NumPy's files
    out: a .csv with a row a sink, or a folder for all tables
    example: ctxexp sinks gpt2
    """
    if mask is not None and not replace:
        check_absent(mask)
    found = find_sinks(model, text or None, options=options, sentences=sentences, factor=factor, share=share)
    tables, said, files = {"sinks": table(found)}, [], []
    if mask is not None:
        found.save_mask(mask)
        files.append(mask)
    if bool((found.units[found.is_sink] >= 0).any()):
        encoder = Experiment(configured(model, text or None, options)).encoder
        measured = effects(encoder, found, options=[f"min_contexts={min_contexts}"])
        if measured["difference"].notna().any():
            tables["curves"] = effect_table(found, measured)
        else:
            said.append("No curve is defined on this text: give a longer one to see what leaving sinks out changes.")
    else:
        said.append("No word has a sink among its pieces: leaving them out changes no curve of words.")
    return Document(said, tables, files=files)


def table(found: Sinks) -> Table:
    """A row a kind of place, in words below it which tokens."""
    frame = found.frame
    cells = [
        [row.kind, f"{row.pieces:,}", f"{row.by_norm:,}", f"{row.by_attention:,}", f"{row.both:,}", row.layers_by_norm,
         row.layers_by_attention, f"{row.largest_ratio:.1f}",
         "-" if np.isnan(row.most_attention) else f"{row.most_attention:.2f}"]
        for row in frame.itertuples()
    ]  # fmt: skip
    columns = [
        "place",
        "pieces",
        "by norm",
        "by attention",
        "both",
        "in layers",
        "drawn to in",
        "norm / median",
        "drawn",
    ]
    notes = [
        f"{len(found.sentences):,} sentences; by norm: above {found.factor:g} times a layer's median; by attention: "
        f"above {found.share:g} beyond an even share, mean over heads and the pieces that see it"
    ]
    if found.attention is None:
        notes.append("the model gives no attention")
    for kind in frame.loc[frame["by_norm"] + frame["by_attention"] > 0, "kind"]:
        own = found.tokens[(found.kinds == kind) & found.is_sink].tolist()
        common = Counter(own).most_common(MOST_TOKENS)
        notes.append(f"{kind}: " + ", ".join(f"{token!r} {n}" for token, n in common))
    return Table(f"Sinks of {found.title}", found.pieces, columns, cells, notes)


def effect_table(found: Sinks, measured: pd.DataFrame) -> Table:
    """A row a metric: the layer in which leaving sinks out changes it most."""
    cells = []
    for metric in METRICS:
        own = measured[measured["metric"] == metric]
        if not own["difference"].notna().any():
            continue
        most = own.loc[own["difference"].abs().idxmax()]
        rest = own["difference"].abs().median()
        cells.append([metric, str(int(most["layer"])), f"{most['with']:.3f}", f"{most['without']:.3f}",
                      f"{most['difference']:+.3f}", f"{rest:.3f}"])  # fmt: skip
    columns = ["curve", "layer", "with sinks", "without", "change", "median change, all layers"]
    words = {
        pair for pair in zip(found.sentence[found.is_sink], found.units[found.is_sink], strict=True) if pair[1] >= 0
    }
    notes = [
        f"less chance, but for contextuality and anisotropy; words with a sink among their pieces: {len(words):,}; the "
        "layer is the one that changes most"
    ]
    return Table("Without its sinks", measured, columns, cells, notes)
