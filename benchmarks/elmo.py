"""ELMo's encoding speed over that of a bare `nn.LSTM(proj_size=...)` of the same size on the same batches.

`python benchmarks/elmo.py` prints tokens/s of both and their ratio (median of alternating rounds). The bare LSTM has no
clips, no residual, no token layer, no markers dropped and nothing copied out: 1 means that all this costs nothing.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from ctxexp import Sentence
from ctxexp.command import registry

FILTERS = [[1, 32], [2, 32], [3, 64], [4, 128], [5, 256]]


def options(projection: int, cells: int) -> dict[str, Any]:
    """The mini's shape."""
    clips = {"cell_clip": 3, "proj_clip": 3, "use_skip_connections": True}
    words = {"n_highway": 1, "n_characters": 262, "max_characters_per_token": 50, "activation": "relu"}
    return {
        "lstm": {"dim": cells, "projection_dim": projection, "n_layers": 2, **clips},
        "char_cnn": {"embedding": {"dim": 16}, "filters": FILTERS, **words},
    }


def batches(n_batches: int, tokens: int, rng: np.random.Generator) -> list[list[Sentence]]:
    """Batches of equal length with words of a Zipf vocabulary of 20,000."""
    alphabet = np.array(list("etaoinshrdlu"))
    words = ["".join(rng.choice(alphabet, n)) for n in rng.integers(1, 12, 20_000)]
    found = []
    for length in rng.integers(6, 36, n_batches):
        draws = np.minimum(rng.zipf(1.3, (tokens // length, length)), len(words)) - 1
        found.append([Sentence.of(words[i] for i in row) for row in draws])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--projection", type=int, default=128)
    parser.add_argument("--cells", type=int, default=1280)
    parser.add_argument("--tokens", type=int, default=2048, help="words of a batch")
    parser.add_argument("--batches", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--dtype", default="float32", choices=("float32", "bfloat16"))
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    warnings.filterwarnings("ignore", "LSTM with projections is not supported with oneDNN")

    with TemporaryDirectory() as folder:
        shape = Path(folder) / "options.json"
        shape.write_text(json.dumps(options(asked.projection, asked.cells)), encoding="utf-8")
        elmo = registry().find("model", "elmo").factory
        encoder = elmo(weights="untrained", options_file=str(shape), device="cpu", dtype=asked.dtype)
    data = batches(asked.batches, asked.tokens, np.random.default_rng(0))
    n_words = sum(len(s) for batch in data for s in batch)
    dtype = getattr(torch, asked.dtype)
    bare = torch.nn.LSTM(asked.projection, asked.cells, 2, proj_size=asked.projection, bidirectional=False).to(dtype)
    inputs = [torch.randn(len(b[0]) + 2, len(b), asked.projection).to(dtype) for b in data]

    def encode() -> None:
        encoder.forget_words()
        for batch in data:
            for _ in encoder.encode(batch):
                pass

    @torch.inference_mode()
    def lstm() -> None:
        for x in inputs:
            bare(x)
            bare(x.flip(0))

    def seconds(run: object) -> float:
        start = time.perf_counter()
        run()  # type: ignore[operator]
        return time.perf_counter() - start

    encode()
    lstm()
    times = [(seconds(encode), seconds(lstm)) for _ in range(asked.rounds)]
    ours, theirs = (n_words / statistics.median(column) for column in zip(*times, strict=True))
    ratio = statistics.median(theirs_s / ours_s for ours_s, theirs_s in times)
    layers = f"2 x 2 LSTM({asked.cells} -> {asked.projection})"
    print(f"shape                  {layers}, {asked.dtype}, {asked.threads} thread(s)")
    print(f"encoder                {ours:,.0f} tokens/s (character CNN and copying out included)")
    print(f"bare nn.LSTM           {theirs:,.0f} tokens/s")
    print(f"encoder / bare LSTM    {ratio:.2f}")


if __name__ == "__main__":
    main()
