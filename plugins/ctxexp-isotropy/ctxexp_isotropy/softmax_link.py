"""The softmax link of a causal language model: h.w = PMI(x, c) + log p(x) + lambda_c (Li et al. 2020, section 2).

Two PMIs are set against the products. The model's *own* is made from the products themselves, so that the link holds
exactly: it says which share each term has. The *counted* one is made from a text alone, of a piece and the piece
before it: it says whether products go with how often things really meet.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import islice

import numpy as np

from ctxexp.dataset import Sentence
from ctxexp.errors import ModelError
from ctxexp.maths.correlation import partial, pearson
from ctxexp.model import Encoder

DEFINITION = (
    "Pearson correlation of h.w with PMI and log p(x); h: the causal model's last hidden state at a piece of the "
    "corpus, w: row x of its output matrix. own: log p(x|c) = h.w - log sum_x exp h.w is the model's, log p(x) the "
    "share of x in the text, PMI(x, c) = log p(x|c) - log p(x). counted: PMI of x and the piece before it, from how "
    "often they follow each other in the text; h.w averaged over the contexts that end in that piece"
)


def softmax_link(
    hidden: np.ndarray, output: np.ndarray, counts: np.ndarray, *, contexts: int = 1000, pieces: int = 1000, seed: int
) -> dict[str, float]:
    """Pearson correlations, in [-1, 1], of products of contexts and pieces with the model's own PMI and with frequency.

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
    occurring = np.flatnonzero(counts > 0)
    x = np.sort(rng.choice(occurring, min(pieces, len(occurring)), replace=False))
    c = np.sort(rng.choice(len(hidden), min(contexts, len(hidden)), replace=False))
    if len(x) < 2 or len(c) < 1:
        names = ("own_pmi", "log_p", "own_pmi_within", "log_p_within", "log_p_mean", "lambda_sd", "residual")
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
        "own_pmi": pearson(product.ravel(), pmi.ravel()),
        "log_p": pearson(product.ravel(), wide.ravel()),
        "own_pmi_within": float(np.mean([pearson(a, b) for a, b in zip(product, pmi, strict=True)])),
        "log_p_within": float(np.mean([pearson(a, log_p) for a in product])),
        "log_p_mean": pearson(product.mean(axis=0), log_p),
        "lambda_sd": float(lam.std(ddof=1)) if len(c) > 1 else math.nan,
        "residual": float(np.abs(product - (pmi + log_p + lam[:, None])).max()),
        "contexts": float(len(c)),
        "pieces": float(len(x)),
    }


def counted_link(
    hidden: np.ndarray, ends: np.ndarray, output: np.ndarray, following: np.ndarray, *, least: int = 5
) -> dict[str, float]:
    """Pearson correlations, in [-1, 1], of products with the PMI of a piece and the one before it, counted in a text.

    `hidden` (n, d): hidden states, one a context; `ends` (n,): the piece in which each ends; `output` (V, d): the
    softmax' matrix; `following` (m, 2): the text's pieces y, x that follow each other. PMI(y, x) = log p(y, x) - log
    p(y) - log p(x), all three shares of `following`. Whole contexts hardly ever recur, so that of each only its last
    piece is counted, and the product of a pair is h.w averaged over the contexts that end in y. Pairs are those met
    `least` times or more: PMI of rarer ones is mostly noise, and of pairs never met minus infinity.

    counted_pmi, counted_log_p: over pairs; counted_sum: of products with PMI + log p(x), which is log p(x|y) counted;
    counted_pmi_given_log_p: partial, since among pairs that are met the rare x are those of high PMI; its _within: the
    same about each y's own means over its pairs, which takes lambda_c out. counted_pairs: how many. NaN where a side
    is constant.
    """
    pairs, n = np.unique(following, axis=0, return_counts=True)
    before, after = (np.bincount(column, minlength=len(output)) for column in following.T)
    is_frequent = (n >= least) & np.isin(pairs[:, 0], ends)
    (y, x), n = pairs[is_frequent].T, n[is_frequent]
    log_p = np.log(after[x] / len(following))
    pmi = np.log(n / before[y]) - log_p
    last, where = np.unique(ends, return_inverse=True)
    mean = np.zeros((len(last), hidden.shape[1]))
    np.add.at(mean, where, hidden)
    mean /= np.bincount(where)[:, None]
    product = np.einsum("pd,pd->p", mean[np.searchsorted(last, y)], output[x].astype(np.float64))

    def within(values: np.ndarray) -> np.ndarray:
        centred: np.ndarray = values - (np.bincount(y, values) / np.maximum(np.bincount(y), 1))[y]
        return centred

    return {
        "counted_pmi": pearson(product, pmi),
        "counted_log_p": pearson(product, log_p),
        "counted_sum": pearson(product, pmi + log_p),
        "counted_pmi_given_log_p": _partial(product, pmi, log_p),
        "counted_pmi_given_log_p_within": _partial(within(product), within(pmi), within(log_p)),
        "counted_pairs": float(len(y)),
    }


def _partial(a: np.ndarray, b: np.ndarray, given: np.ndarray) -> float:
    return float(partial(pearson(a, b), pearson(a, given), pearson(b, given)))


def of_model(
    encoder: Encoder,
    sentences: Sequence[Sentence],
    *,
    text: Sequence[Sentence] | None = None,
    contexts: int = 1000,
    pieces: int = 1000,
    least: int = 5,
    seed: int = 0,
) -> dict[str, float]:
    """Both links of a causal transformer whose head is one matrix, such as GPT-2's, at every piece of `sentences`.

    Frequencies and the counted PMI are of `text`, by default the same sentences; a larger one counts better.

    Raises ModelError for a model whose last layer's rows don't meet its output matrix in a bare product: one that reads
    both ways (BERT's head has a layer of its own), without a known head, or with rows that aren't single pieces after
    the final norm. A head's bias, scaling or soft cap isn't known here: of a model that has one, logits differ.
    """
    details = encoder.details
    if not details.get("causal") or details.get("pooling") != "pieces" or not details.get("final_norm"):
        raise ModelError(
            f"encoder {encoder.name!r}: the softmax link needs a causal model's single pieces after its final norm; "
            "use model=gpt2 with pooling=pieces and final_norm=true"
        )
    text = sentences if text is None else text
    tables = {table.name: table for table in encoder.tables(text)}
    table = tables.get("output", tables["input"])
    if table.name == "input" and not table.tied:
        raise ModelError(f"encoder {encoder.name!r}: its output matrix is not known ({table.note})")
    assert table.counts is not None
    hidden = np.concatenate([one.layers[-1] for one in islice(encoder.encode(sentences), len(sentences))])
    ends, ids_of_text = (encoder.piece_ids(each) for each in (sentences, text))  # type: ignore[attr-defined]
    following = np.concatenate([np.stack([ids[:-1], ids[1:]], axis=1) for ids in ids_of_text])
    own = softmax_link(hidden, table.vectors, table.counts, contexts=contexts, pieces=pieces, seed=seed)
    return own | counted_link(hidden, np.concatenate(ends), table.vectors, following, least=least)
