"""What a reference model would give under each cause: its own ingredients, tokens, hidden states, pooling and modules,
put together in another way. A cause is a row of CAUSES.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ctxexp import Encoder, Sentence
from ctxexp_compare.light.vectors import Explanation, root_mean_square, row_errors, unit

PROBES = 8  # texts by which causes are sifted
SHORT = 64  # tokens of a probe, at most, where enough texts are as short
LIMITS = (32, 64, 128, 256, 384, 512, 1024, 2048)  # tokens at which servers cut
BATCHES = (8, 16, 32, 64)  # texts that servers pad to their longest
KEPT = 4  # explanations that are tried on every text
EXACT = 0.002  # of the plain error
OWN = 1e-3  # the largest error of the reference's own recipe
PROMPTS = (
    "query: ", "passage: ", "search_query: ", "search_document: ", "clustering: ", "classification: ",
    "Represent this sentence for searching relevant passages: ", "task: search result | query: ",
    "title: none | text: ",
    "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery: ",
)  # fmt: skip  # of E5, Nomic, BGE, EmbeddingGemma, and Qwen3's


class Recipe(NamedTuple):
    """How one vector is made of a text. `layer` counts from 0, -1 is the last."""

    prompt: str = ""
    spelling: str = ""  # how the text is changed before it is tokenised: a key of SPELLINGS
    case: str = ""  # of the tokenizer's own normaliser: kept, lower, accents
    special: str = ""  # tokens around the text: none, twice, without the last, with the start's, with the end's
    limit: int | None = None
    from_left: bool = False
    padding: str = ""  # to the longest of a batch, "all", or to a limit, with or without attention: "32 attended"
    layer: int = -1
    norm: str = ""  # of the last hidden state: before; of another: after
    pooling: str = "mean"
    shift: int = 0  # tokens that the pooled ones lie later
    modules: str = ""  # behind the pooling: none, no activation, no bias


SPELLINGS: Mapping[str, Callable[[str], str]] = {
    "in lower case": str.lower,
    "without blanks in a row": lambda text: " ".join(text.split()),
    "without line breaks": lambda text: text.replace("\n", " "),
}
POOLINGS: Mapping[str, Callable[[np.ndarray, slice], np.ndarray]] = {
    "mean": lambda x, text: x.mean(axis=0),
    "mean without special tokens": lambda x, text: x[text].mean(axis=0),
    "cls": lambda x, text: x[0],
    "last": lambda x, text: x[-1],
    "last of the text": lambda x, text: x[text][-1],
    "max": lambda x, text: x.max(axis=0),
    "weighted mean": lambda x, text: np.average(x, axis=0, weights=np.arange(1, len(x) + 1)),
}  # of (tokens, dim), the text's own tokens being `text`
MODES = {
    "max_tokens": "max", "weightedmean_tokens": "weighted mean", "mean_sqrt_len_tokens": "mean",
    "weightedmean": "weighted mean", "mean_sqrt_len": "mean", "lasttoken": "last",
    "mean_text": "mean without special tokens",
}  # fmt: skip  # of sentence-transformers, by our names; lengths don't count


class Tokens(NamedTuple):
    ids: tuple[int, ...]
    begin: int  # of the text's own
    end: int


class Ingredients:
    """A transformer's tokens, states and modules, from which a recipe makes vectors; lengths are not normalised.

    `n_skipped` tokens of a prompt aren't pooled.
    """

    def __init__(self, encoder: Any, texts: Sequence[str], pooling: str = "") -> None:
        self.encoder, self.texts = encoder, texts
        self.view: Any = encoder.sentence_encoder()
        pipeline = self.view.pipeline
        mode = pooling or self.view.poolings[0]
        if mode == "pipeline":
            mode = pipeline.facts.get("mode", "")
        self.own = Recipe(
            prompt=pipeline.prompt, spelling="in lower case" if pipeline.lower else "", limit=self.view.limit,
            from_left=encoder.reader.cuts_left, pooling=MODES.get(mode, mode),
        )  # fmt: skip
        self.prompts = [
            text[1:-1] for key, text in pipeline.facts.items() if key.startswith("prompt ") and isinstance(text, str)
        ]
        self._states = dict[tuple[Any, ...], tuple[np.ndarray, np.ndarray | None]]()
        self._tokenizers: dict[str, Any] = {"": encoder.tokenizer}

    @cached_property
    def lengths(self) -> list[int]:
        """Tokens of each text by the reference's own recipe."""
        return [len(self.tokens(text, self.own).ids) for text in self.texts]

    def vectors(self, recipe: Recipe, numbers: Sequence[int]) -> np.ndarray:
        """(n, columns) of the texts of these numbers."""
        return np.stack([self._vector(recipe, number) for number in numbers])

    def _vector(self, recipe: Recipe, number: int) -> np.ndarray:
        tokens = self.tokens(self.texts[number], recipe)
        padded, is_attended = self._padded(recipe, number, len(tokens.ids))
        states, before = self._states_of(tokens.ids, padded, is_attended=is_attended)
        x = states[recipe.layer]
        if recipe.norm == "before" and before is not None:
            x = before
        if recipe.norm == "after":
            x = self._normed(x)
        x = x[: padded or None]
        first, end = self._skipped(recipe) + max(recipe.shift, 0), len(x) + min(recipe.shift, 0)
        own = x[first:end] if end > first else x[-1:]
        begin = max(tokens.begin + recipe.shift - first, 0)
        text = slice(begin, max(tokens.end + recipe.shift - first, begin + 1))
        return self._modules(
            POOLINGS[recipe.pooling](own, text if begin < len(own) else slice(-1, None)), recipe.modules
        )

    def tokens(self, text: str, recipe: Recipe) -> Tokens:
        """The pieces that the network reads."""
        text = SPELLINGS[recipe.spelling](recipe.prompt + text) if recipe.spelling else recipe.prompt + text
        if recipe.case:
            encoding = self._tokenizer(recipe.case).encode(text)
            plain = [i for i, special in enumerate(encoding.special_tokens_mask) if not special]
            ids, before, after = list(encoding.ids), min(plain, default=0), 0
            after = len(ids) - 1 - max(plain, default=len(ids) - 1)
        else:
            (pieces,) = self.encoder.read_pieces([Sentence(text, (), ())])
            ids, before, after = pieces.ids.tolist(), pieces.n_before, pieces.n_after
        front, own, back = ids[:before], ids[before : len(ids) - after], ids[len(ids) - after :]
        if recipe.special:
            front, back = self._special(recipe.special, front, back)
        if recipe.limit is not None:
            room = max(recipe.limit - len(front) - len(back), 0)
            own = own[len(own) - room :] if recipe.from_left and len(own) > room else own[:room]
        return Tokens((*front, *own, *back), len(front), len(front) + len(own))

    def _special(self, special: str, front: list[int], back: list[int]) -> tuple[list[int], list[int]]:
        roles = self.encoder.loaded.tokenizer
        if special == "none":
            return [], []
        if special == "twice":
            return front + front, back + back
        if special == "without the last":
            return front, back[:-1]
        number = roles.bos_token_id if special == "with the start's" else roles.eos_token_id
        if special == "with the start's":
            return [number, *front], back
        return front, [*back, number]

    def _tokenizer(self, case: str) -> Any:
        """The tokenizer whose normaliser treats capitals or accents otherwise."""
        if case not in self._tokenizers:
            from tokenizers import Tokenizer

            state = json.loads(self.encoder.tokenizer.to_str())
            own = state["normalizer"] or {"type": "Sequence", "normalizers": []}
            steps = [one for one in own.get("normalizers", [own]) if case != "kept" or one["type"] != "Lowercase"]
            if case == "lower" and all("lowercase" not in one for one in steps):
                steps = [{"type": "Lowercase"}, *steps]
            for one in steps:
                if "lowercase" in one:
                    one.update({"strip_accents": False} if case == "accents" else {"lowercase": case == "lower"})
                    if case == "kept" and one.get("strip_accents") is None:
                        one["strip_accents"] = False
            state["normalizer"] = {"type": "Sequence", "normalizers": steps}
            self._tokenizers[case] = Tokenizer.from_str(json.dumps(state))
        return self._tokenizers[case]

    def _padded(self, recipe: Recipe, number: int, n: int) -> tuple[int, bool]:
        """The length that a text is padded to (0: not), and whether its padding is attended to."""
        if not recipe.padding:
            return 0, False
        size, attention = recipe.padding.split(" ")
        if size == "all":
            longest = max(self.lengths)
        elif int(size) in BATCHES:
            start = number // int(size) * int(size)
            longest = max(self.lengths[start : start + int(size)])
        else:
            longest = int(size)
        return max(longest, n), attention == "attended"

    def _states_of(
        self, ids: tuple[int, ...], padded: int, *, is_attended: bool
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Hidden states (layers, tokens, dim) float32, and what enters the last norm (tokens, dim)."""
        key = ids, padded, is_attended
        if key not in self._states:
            import torch

            more = {}
            if padded:
                pad = self.encoder.loaded.tokenizer.pad_token_id or 0
                ids = (*ids, *[pad] * (padded - len(ids)))
                mask = [1] * len(key[0]) + [int(is_attended)] * (padded - len(key[0]))
                more["attention_mask"] = torch.tensor([mask], device=self.encoder.device)
            calls: list[tuple[Any, Any]] = []
            norms = [one for one in self.encoder.model.modules() if "Norm" in type(one).__name__]
            hooks = [one.register_forward_hook(lambda _, args, out: calls.append((args[0], out))) for one in norms]
            try:
                with torch.inference_mode():
                    out = self.encoder.forward(torch.tensor([ids], device=self.encoder.device), **more)
            finally:
                for hook in hooks:
                    hook.remove()
            last = out.last_hidden_state
            layers = [*out.hidden_states[:-1], last]
            states = np.stack([x[0].float().cpu().numpy() for x in layers if x is not None])
            entered = [x for x, y in calls if y.shape == last.shape and torch.equal(y, last)]
            before = entered[-1][0].float().cpu().numpy() if entered else None
            if len(self._states) > 4 * PROBES:
                self._states.clear()
            self._states[key] = states, before
        return self._states[key]

    def _normed(self, x: np.ndarray) -> np.ndarray:
        import torch

        norm = self.encoder.model.get_submodule(self.encoder.norm)
        with torch.inference_mode():
            return np.asarray(norm(torch.from_numpy(x).to(self.encoder.device)).float().cpu().numpy())

    def _skipped(self, recipe: Recipe) -> int:
        """Tokens of the prompt that the pooling leaves out, special ones before them included."""
        if self.view.pipeline.include_prompt or not recipe.prompt:
            return 0
        return self.tokens("", recipe).end

    def _modules(self, x: np.ndarray, choice: str) -> np.ndarray:
        behind = getattr(self.view, "behind", None)
        if behind is None or choice == "none":
            return x
        import torch

        with torch.inference_mode():
            out = {"sentence_embedding": torch.from_numpy(x[None]).float().to(self.encoder.device)}
            for module in behind.values():
                name = type(module).__name__
                if name == "Dense" and choice:
                    y = module.linear(out["sentence_embedding"])
                    if choice == "no bias" and module.linear.bias is not None:
                        y = module.activation_function(y - module.linear.bias)
                    out["sentence_embedding"] = y
                elif name not in ("Pooling", "Normalize"):
                    out = module(out)
        return np.asarray(out["sentence_embedding"][0].cpu().numpy())


Variants = Iterator[tuple[str, Recipe]]


def poolings(m: Ingredients) -> Variants:
    for name in POOLINGS:
        if name != m.own.pooling:
            yield f"{name}, expected {m.own.pooling}", m.own._replace(pooling=name)


def projections(m: Ingredients) -> Variants:
    if getattr(m.view, "behind", None) is not None:
        yield f"{', '.join(m.view.pipeline.modules[2:])} missing", m.own._replace(modules="none")
        for choice in ("no activation", "no bias"):
            yield f"Dense with {choice}", m.own._replace(modules=choice)


def prompts(m: Ingredients) -> Variants:
    if m.own.prompt:
        yield f"{m.own.prompt!r} missing", m.own._replace(prompt="")
    for prompt in dict.fromkeys((*m.prompts, *PROMPTS)):
        if prompt and prompt != m.own.prompt:
            yield f"{prompt!r}, expected {m.own.prompt!r}", m.own._replace(prompt=prompt)


def other_layers(m: Ingredients) -> Variants:
    n = len(m.encoder.layer_numbers)
    for layer in range(n - 2, -1, -1):
        yield f"layer {layer}, expected {n - 1}", m.own._replace(layer=layer)
        if m.encoder.norm:
            yield f"layer {layer} after the last norm, expected {n - 1}", m.own._replace(layer=layer, norm="after")


def norms(m: Ingredients) -> Variants:
    yield "the last norm is left out", m.own._replace(norm="before")


def shifts(m: Ingredients) -> Variants:
    for shift in (1, -1):
        where = "later" if shift > 0 else "earlier"
        yield f"the pooled tokens begin or end one {where}", m.own._replace(shift=shift)


def tokenizers(m: Ingredients) -> Variants:
    for case, text in {
        "kept": "capitals are kept", "lower": "text is lower-cased", "accents": "accents are kept",
    }.items():  # fmt: skip
        yield text, m.own._replace(case=case)
    roles = m.encoder.loaded.tokenizer
    wanted = {"none": "no special tokens", "twice": "special tokens twice", "without the last": "no closing token"}
    wanted |= {"with the start's": "a start token before them"} if roles.bos_token_id is not None else {}
    wanted |= {"with the end's": "an end token behind them"} if roles.eos_token_id is not None else {}
    for special, text in wanted.items():
        yield text, m.own._replace(special=special)
    for spelling in SPELLINGS:
        if spelling != m.own.spelling:
            yield f"text is read {spelling}", m.own._replace(spelling=spelling)


def cuts(m: Ingredients) -> Variants:
    window = m.encoder.window
    for limit in dict.fromkeys((*LIMITS, window)):
        if limit != m.own.limit and (window is None or (limit or 0) <= window) and (limit or 1e9) < max(m.lengths) * 4:
            yield f"at {limit} tokens, expected {m.own.limit}", m.own._replace(limit=limit)
    if m.own.limit:
        yield "from its beginning, not its end", m.own._replace(from_left=not m.own.from_left)


def paddings(m: Ingredients) -> Variants:
    window = m.encoder.window or max(LIMITS)
    for size in ("all", *BATCHES, *(limit for limit in (128, 256, 512) if limit <= window)):
        for attention, text in {"attended": "attended to", "pooled": "pooled"}.items():
            yield f"padding is {text}", m.own._replace(padding=f"{size} {attention}")


CAUSES: Mapping[str, Callable[[Ingredients], Variants]] = {
    "pooling": poolings,
    "projection": projections,
    "another layer": other_layers,
    "before the norm": norms,
    "one token off": shifts,
    "prompt": prompts,
    "tokenizer": tokenizers,
    "text cut": cuts,
    "padding": paddings,
}  # quick ones first; what to do about each stands in REMEDIES


def explain(
    encoder: Encoder, texts: Sequence[str], a: np.ndarray, b: np.ndarray, pooling: str = ""
) -> Iterator[Explanation]:
    """What the reference model would give of all texts under the causes that fit b best, on a few of them.

    Args:
        encoder: The reference, whose sentence vectors are a.
        texts: The texts.
        a: Its vectors (n, dim).
        b: The candidate's (n, columns), maybe fewer.
        pooling: How a is made, where that isn't the reference's own way.
    """
    m = Ingredients(encoder, texts, pooling)
    columns = min(a.shape[1], b.shape[1])
    moved = row_errors(unit(a[:, :columns]), unit(b[:, :columns]))
    probes = _probes(moved, m.lengths)
    if _error(m.vectors(m.own, probes)[:, : a.shape[1]], a[probes]) > OWN:
        return  # modules that aren't known here
    for cause, detail, recipe in _fitting(m, probes, b[probes]):
        x = m.vectors(recipe, range(len(texts)))[:, : b.shape[1]]
        yield Explanation(cause, detail, unit(x) if m.view.pipeline.normalizes else x)


def _fitting(m: Ingredients, probes: Sequence[int], b: np.ndarray) -> list[tuple[str, str, Recipe]]:
    """Causes, in words too, by which the probes lie nearer to the candidate's b, the nearest first; none is looked for
    behind one that is exact."""
    plain = min(_error(m.vectors(m.own, probes)[:, : b.shape[1]], b), 1.0)
    fits = list[tuple[float, int, str, str, Recipe]]()
    for cause, variants in CAUSES.items():
        for detail, recipe in variants(m):
            x = m.vectors(recipe, probes)
            if (error := _error(x[:, : b.shape[1]], b)) > 0.7 * plain:
                continue
            fits.append((error, len(fits), cause, detail, recipe))
            if error < EXACT * plain:
                return [(cause, detail, recipe)]
    return [(cause, detail, recipe) for *_, cause, detail, recipe in sorted(fits)[:KEPT]]


def _error(a: np.ndarray, b: np.ndarray) -> float:
    """Of directions, root mean square over rows; infinite for other widths."""
    return float(root_mean_square(row_errors(unit(a), unit(b)))) if a.shape == b.shape else np.inf


def _probes(moved: np.ndarray, lengths: Sequence[int]) -> list[int]:
    """Texts that moved most, some that moved least, and one of those between, short ones where there are."""
    sizes = np.asarray(lengths)
    short = np.flatnonzero(sizes <= max(SHORT, int(np.sort(sizes)[min(PROBES, len(sizes)) - 1])))
    order = short[np.argsort(-moved[short], kind="stable")]
    most, least = PROBES // 2, PROBES // 4
    middle = order[most : len(order) - least]
    chosen = [*order[:most], *middle[:: max(1, len(middle) // 2)][:2], *order[len(order) - least :]]
    # the longest, where it alone can tell: a cut, or padding
    if moved[short].max(initial=0) < moved.max() / 2:
        chosen += np.argsort(-moved, kind="stable")[:2].tolist()
    return sorted({int(i) for i in chosen})
