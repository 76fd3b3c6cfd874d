"""bert_score's baseline file: the mean greedy match of unrelated sentences' pieces, layer by layer (Zhang et al. 2020).

`bert_score.score(..., rescale_with_baseline=True, baseline_path=FILE)` reads it: a CSV with a header and a row a layer
of `hidden_states`. Special pieces are matched with, and not counted, as there; sentences of 32 words or more are left
out, as in its own files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ctxexp import Encoder, Sentence
from ctxexp.errors import ConfigError
from ctxexp.report import write_file

MAX_WORDS = 32
PAIRS = 1000


def greedy_match(a: np.ndarray, b: np.ndarray, counted_a: np.ndarray, counted_b: np.ndarray) -> np.ndarray:
    """Precision, recall and F (3, layers) of candidate pieces a (layers, n, dim) and reference pieces b (layers, m,
    dim); `counted` (n,) bool are the pieces that the means are over."""
    a, b = (x / np.linalg.norm(x, axis=2, keepdims=True) for x in (a.astype(np.float64), b.astype(np.float64)))
    cosines = a @ b.transpose(0, 2, 1)
    precision = cosines.max(axis=2)[:, counted_a].mean(axis=1)
    recall = cosines.max(axis=1)[:, counted_b].mean(axis=1)
    return np.stack([precision, recall, 2 * precision * recall / (precision + recall)])


def baseline(encoder: Encoder, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
    """Means of precision, recall and F (layers, 3) over pairs of texts, in every layer of `hidden_states`. Raises
    ConfigError for an encoder that isn't a model of transformers."""
    model, tokenizer = getattr(encoder, "model", None), getattr(encoder, "tokenizer", None)
    if model is None or tokenizer is None:
        raise ConfigError("bert_score= takes models of transformers, whose pieces it matches")
    every = {text: _pieces(model, tokenizer, text) for text in dict.fromkeys(text for pair in pairs for text in pair)}
    scores = [greedy_match(every[a][0], every[b][0], every[a][1], every[b][1]) for a, b in pairs]
    return np.mean(scores, axis=0).T


def _pieces(model: Any, tokenizer: Any, text: str) -> tuple[np.ndarray, np.ndarray]:
    """The vectors of a text's pieces (layers, n, dim), special ones among them, and which are the text's own (n,)."""
    import torch

    encoding = tokenizer.encode(text)
    with torch.inference_mode():
        ids = torch.tensor([encoding.ids], device=model.device)
        states = model(input_ids=ids, output_hidden_states=True).hidden_states
    vectors = np.stack([layer[0].float().cpu().numpy() for layer in states])
    return vectors, np.array(encoding.special_tokens_mask) == 0


def unrelated_texts(domains: Mapping[str, Sequence[Sentence]], seed: int) -> list[tuple[str, str]]:
    """Pairs of texts of one domain, short enough, each text once."""
    rng = np.random.default_rng(seed)
    pairs: list[tuple[str, str]] = []
    for sentences in domains.values():
        texts = [one.text for one in sentences if len(one.text.split()) < MAX_WORDS]
        order = [texts[i] for i in rng.permutation(len(texts))]
        pairs += list(zip(order[::2], order[1::2], strict=False))
    return [pairs[i] for i in rng.permutation(len(pairs))[:PAIRS]]


def write_baseline(path: Path, values: np.ndarray) -> None:
    """Write (layers, 3) as bert_score's file."""
    rows = "".join(f"{layer},{','.join(f'{value:.8f}' for value in row)}\n" for layer, row in enumerate(values))
    write_file(path, f"LAYER,P,R,F\n{rows}")
