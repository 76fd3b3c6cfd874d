"""The softmax link of a causal language model: h.w = PMI(x, c) + log p(x) + lambda_c (Li et al. 2020, section 2)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ctxexp.corpus import Sentence
from ctxexp.correlation import pearson
from ctxexp.encoder import Encoder, details
from ctxexp.errors import ModelError

DEFINITION = (
    "Pearson correlation of h.w with PMI and log p(x); h: the causal model's last hidden state at a piece of the "
    "corpus, w: row x of its output matrix; log p(x|c) = h.w - log sum_x exp h.w is the model's own, log p(x) the "
    "share of x in the corpus, PMI(x, c) = log p(x|c) - log p(x)"
)


def softmax_link(
    hidden: np.ndarray, output: np.ndarray, counts: np.ndarray, *, contexts: int = 1000, pieces: int = 1000, seed: int
) -> dict[str, float]:
    """How products of contexts and pieces go with PMI and with frequency; correlations in [-1, 1], logs natural.

    `hidden` (n, d): hidden states, one a context; `output` (V, d): the softmax' matrix; `counts` (V,): its pieces in
    the corpus. At most `contexts` random contexts are paired with at most `pieces` random pieces of those that occur
    (alike likely, however frequent); log Z(c) is over all V. Contexts hardly ever recur, so p(x|c) can't be counted:
    it is the model's own, and the link holds exactly. What is measured is the share of each term:

    pmi, log_p: Pearson over all sampled (x, c); pmi_within, log_p_within: within a context, where lambda_c = log Z(c)
    is constant, averaged over contexts; log_p_mean: of each piece's mean product over contexts with log p(x).
    lambda_sd: spread (ddof 1) of lambda_c. residual: the largest |h.w - PMI - log p(x) - lambda_c|. NaN where a side
    is constant.
    """
    rng = np.random.default_rng(seed)
    counted = np.flatnonzero(counts > 0)
    x = np.sort(rng.choice(counted, min(pieces, len(counted)), replace=False))
    c = np.sort(rng.choice(len(hidden), min(contexts, len(hidden)), replace=False))
    if len(x) < 2 or len(c) < 1:
        names = ("pmi", "log_p", "pmi_within", "log_p_within", "log_p_mean", "lambda_sd", "residual")
        return dict.fromkeys(names, math.nan) | {"contexts": float(len(c)), "pieces": float(len(x))}
    log_p = np.log(counts[x] / counts.sum())
    product, lam = np.empty((len(c), len(x))), np.empty(len(c))
    columns = output.astype(np.float64).T
    for i in range(0, len(c), 64):
        every = hidden[c[i : i + 64]].astype(np.float64) @ columns  # (<= 64, V)
        top = every.max(axis=1)
        lam[i : i + 64] = top + np.log(np.exp(every - top[:, None]).sum(axis=1))
        product[i : i + 64] = every[:, x]
    pmi = product - lam[:, None] - log_p
    wide = np.broadcast_to(log_p, product.shape)
    return {
        "pmi": pearson(product.ravel(), pmi.ravel()),
        "log_p": pearson(product.ravel(), wide.ravel()),
        "pmi_within": float(np.mean([pearson(a, b) for a, b in zip(product, pmi, strict=True)])),
        "log_p_within": float(np.mean([pearson(a, log_p) for a in product])),
        "log_p_mean": pearson(product.mean(axis=0), log_p),
        "lambda_sd": float(lam.std(ddof=1)) if len(c) > 1 else math.nan,
        "residual": float(np.abs(product - (pmi + log_p + lam[:, None])).max()),
        "contexts": float(len(c)),
        "pieces": float(len(x)),
    }


def of_model(
    encoder: Encoder, sentences: Sequence[Sentence], *, contexts: int = 1000, pieces: int = 1000, seed: int = 0
) -> dict[str, float]:
    """The same of a causal transformer whose head is one matrix, such as GPT-2's, over every piece of `sentences`.

    Raises ModelError for a model whose last layer's rows don't meet its output matrix in a bare product: one that reads
    both ways (BERT's head has a layer of its own), without a known head, or with rows that aren't single pieces after
    the final norm. A head's bias, scaling or soft cap isn't known here: of a model that has one, logits differ.
    """
    said = dict(details(encoder))
    if not said.get("causal") or said.get("pooling") != "pieces" or not said.get("final_norm"):
        raise ModelError(
            f"encoder {encoder.name!r}: the softmax link needs a causal model's single pieces after its final norm; "
            "use model=gpt2 with pooling=pieces and final_norm=true"
        )
    tables = {table.name: table for table in encoder.tables(sentences)}  # type: ignore[attr-defined]  # causal ones do
    table = tables.get("output", tables["input"])
    if table.name == "input" and not table.note.startswith("tied: "):
        raise ModelError(f"encoder {encoder.name!r}: its output matrix is not known ({table.note})")
    assert table.counts is not None
    hidden = np.concatenate([one.layers[-1] for one in encoder.encode(sentences)])
    return softmax_link(hidden, table.vectors, table.counts, contexts=contexts, pieces=pieces, seed=seed)
