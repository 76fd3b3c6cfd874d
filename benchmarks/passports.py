"""False alarms of `ctxexp passport` over honest reruns.

    python -m benchmarks.passports [reruns=1000] [seed=0]

A rerun is transformers' own: padded batches of a drawn size, of the sentences in a drawn order, with one thread or two,
of the minis BERT and GPT-2; one in three is rounded to bfloat16 and one in three to float16 where it is stored.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

import numpy as np
import torch
from ctxexp_compare.passport.match import make_passport
from transformers import AutoModel, AutoTokenizer

from ctxexp.command import Experiment, configured
from tests.shipped import mini, polysemy

SENTENCES = list(polysemy().sentences[::75])
STORED = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


@cache
def _loaded(name: str) -> tuple[Any, Any]:
    tokenizer = AutoTokenizer.from_pretrained(mini(name))
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    return AutoModel.from_pretrained(mini(name), dtype=torch.float32).eval(), tokenizer


def rerun(name: str, texts: list[str], batch: int, rng: np.random.Generator) -> list[np.ndarray]:
    """The hidden states (layers, tokens, dim) of each text, by transformers in padded batches of a drawn order."""
    model, tokenizer = _loaded(name)
    vectors: list[np.ndarray] = [np.empty(0)] * len(texts)
    order = rng.permutation(len(texts)).tolist()
    for at in range(0, len(order), batch):
        numbers = order[at : at + batch]
        inputs = tokenizer([texts[i] for i in numbers], return_tensors="pt", padding=True, padding_side="right")
        with torch.inference_mode():
            hidden = torch.stack(model(**inputs, output_hidden_states=True).hidden_states)
        for k, i in enumerate(numbers):
            vectors[i] = hidden[:, k, : int(inputs["attention_mask"][k].sum())].numpy()
    return vectors


def main(args: list[str]) -> None:
    given = dict(arg.split("=", 1) for arg in args)
    rng = np.random.default_rng(int(given.get("seed", 0)))
    each = -(-int(given.get("reruns", 1000)) // 6)
    print("| reruns | stored as | tries | alarms | worst row, of its length |\n|---|---|---|---|---|")
    for name in ("bert", "gpt2"):
        encoder = Experiment(configured(name)).encoder
        states = [encoder.token_states(sentence) for sentence in SENTENCES]
        for stored, dtype in STORED.items():
            alarms, worst = 0, 0.0
            for _ in range(each):
                torch.set_num_threads(int(rng.integers(1, 3)))
                vectors = rerun(name, [one.text for one in SENTENCES], int(rng.integers(1, len(SENTENCES) + 1)), rng)
                found = make_passport([torch.from_numpy(x).to(dtype).float().numpy() for x in vectors], states)
                alarms += not found.is_whole
                worst = max(worst, *(one.worst_error for one in found.layers))
            print(f"| {name} | {stored} | {each} | {alarms} | {worst:.1e} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
