"""What a reference model would give under each cause: its own ingredients, tokens, hidden states, pooling and modules,
put together in another way.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from ctxexp import Encoder, Sentence
from ctxexp_compare.light.vectors import Explanation, direction_error, row_errors, unit

PROBES = 8  # texts by which causes are sifted
FIRST = 2  # of them, on which a cause must do better at all before the others are looked at
SHORT = 64  # tokens of a probe, at most, where enough texts are as short
LIMITS = (32, 64, 128, 256, 384, 512, 1024, 2048)  # tokens at which servers cut
BATCHES = (8, 16, 32, 64)  # texts that servers pad to their longest
KEPT = 4  # explanations that are tried on every text
EXACT = 0.002  # of the plain error
WELL = 0.1  # of the plain error: another cause isn't looked for behind one that leaves less
FURTHER = 0.7  # of the error before it: what a cause leaves, at most
FIRSTS = 2  # causes behind which another is looked for
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
    case: str = ""  # of the tokenizer's own normaliser: a key of CASES
    special: str = ""  # tokens around the text: a key of SPECIAL
    limit: int | None = None
    from_left: bool = False
    padding: str = ""  # to the longest of a batch, "all", or to a limit
    is_attended: bool = False
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
CASES = {"kept": "capitals are kept", "lower": "text is lower-cased", "accents": "accents are kept"}
Ids = list[int]
SPECIAL: Mapping[str, Callable[[Ids, Ids, Any], tuple[Ids, Ids]]] = {
    "no special tokens": lambda front, back, roles: ([], []),
    "special tokens twice": lambda front, back, roles: (front + front, back + back),
    "no closing token": lambda front, back, roles: (front, back[:-1]),
    "a start token before them": lambda front, back, roles: ([roles.bos_token_id, *front], back),
    "an end token behind them": lambda front, back, roles: (front, [*back, roles.eos_token_id]),
}  # of those before and behind the text, and the tokenizer's roles


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

    def error(self, recipe: Recipe, numbers: Sequence[int], b: np.ndarray) -> float:
        """How far the directions of these texts' vectors, cut to b's columns, lie from b (n, columns)."""
        return direction_error(self.vectors(recipe, numbers)[:, : b.shape[1]], b)

    def _vector(self, recipe: Recipe, number: int) -> np.ndarray:
        tokens = self.tokens(self.texts[number], recipe)
        padded = self._padding_of(recipe, number, len(tokens.ids))
        states, before = self._states_of(tokens.ids, padded, is_attended=recipe.is_attended)
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
            front, back = SPECIAL[recipe.special](front, back, self.encoder.loaded.tokenizer)
        if recipe.limit is not None:
            room = max(recipe.limit - len(front) - len(back), 0)
            own = own[len(own) - room :] if recipe.from_left and len(own) > room else own[:room]
        return Tokens((*front, *own, *back), len(front), len(front) + len(own))

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

    def _padding_of(self, recipe: Recipe, number: int, n: int) -> int:
        """The length that a text is padded to; 0: it isn't."""
        if not recipe.padding:
            return 0
        if recipe.padding == "all":
            return max(self.lengths)
        size = int(recipe.padding)
        start = number // size * size
        return max(*self.lengths[start : start + size], n) if size in BATCHES else max(size, n)

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


def variants(m: Ingredients, base: Recipe) -> Iterator[tuple[str, str, Recipe]]:
    """Each cause, what it is in words, and the recipe that it makes of another; quick ones first."""
    for name in POOLINGS:
        if name != base.pooling:
            yield "pooling", f"{name}, expected {base.pooling}", base._replace(pooling=name)
    if getattr(m.view, "behind", None) is not None and not base.modules:
        gone = f"{', '.join(m.view.pipeline.modules[2:])} missing"
        for choice, text in {
            "none": gone, "no activation": "Dense with no activation", "no bias": "Dense with no bias",
        }.items():  # fmt: skip
            yield "projection", text, base._replace(modules=choice)
    n = len(m.encoder.layer_numbers)
    for layer, norm in product(range(n - 2, -1, -1), ("", "after") if m.encoder.norm else ("",)):
        after = " after the last norm" * bool(norm)
        yield "another layer", f"layer {layer}{after}, expected {n - 1}", base._replace(layer=layer, norm=norm)
    yield "before the norm", "the last norm is left out", base._replace(norm="before")
    for shift, where in {1: "later", -1: "earlier"}.items():
        yield "one token off", f"the pooled tokens begin or end one {where}", base._replace(shift=shift)
    for prompt in dict.fromkeys(("", *m.prompts, *PROMPTS)):
        if prompt != base.prompt:
            text = f"{prompt!r}, expected {base.prompt!r}" if prompt else f"{base.prompt!r} missing"
            yield "prompt", text, base._replace(prompt=prompt)
    for case, text in CASES.items():
        yield "tokenizer", text, base._replace(case=case)
    roles = m.encoder.loaded.tokenizer
    lacking = {"a start token before them": roles.bos_token_id, "an end token behind them": roles.eos_token_id}
    for special in SPECIAL:
        if lacking.get(special, 0) is not None:
            yield "tokenizer", special, base._replace(special=special)
    for spelling in SPELLINGS:
        if spelling != base.spelling:
            yield "tokenizer", f"text is read {spelling}", base._replace(spelling=spelling)
    window = m.encoder.window
    for limit in dict.fromkeys((*LIMITS, window)):
        if limit != base.limit and (window is None or (limit or 0) <= window) and (limit or 1e9) < max(m.lengths) * 4:
            yield "text cut", f"at {limit} tokens, expected {base.limit}", base._replace(limit=limit)
    if base.limit:
        yield "text cut", "from its beginning, not its end", base._replace(from_left=not base.from_left)
    sizes = ("all", *map(str, (*BATCHES, *(limit for limit in (128, 256, 512) if limit <= (window or limit)))))
    for size, attended in product(sizes, (True, False)):
        text = "padding is attended to" if attended else "padding is pooled"
        yield "padding", text, base._replace(padding=size, is_attended=attended)


def explain(
    encoder: Encoder | None, texts: Sequence[str], a: np.ndarray, b: np.ndarray, pooling: str = ""
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
    if m.error(m.own, probes, a[probes]) > OWN:
        return  # modules that aren't known here
    plain = min(m.error(m.own, probes, b[probes]), 1.0)
    fits = _fits(m, m.own, probes, b[probes], plain)
    if not fits or fits[0].error > WELL * plain:  # two causes together, one behind the other
        firsts = {fit.cause: fit for fit in reversed(fits)}
        for first in sorted(firsts.values())[:FIRSTS]:
            second = _fits(m, first.recipe, probes[::2], b[probes[::2]], FURTHER * first.error)
            fits += [fit.behind(first) for fit in second if fit.cause != first.cause]
    fits = [fit for fit in sorted(fits) if fit.error < FURTHER * plain]
    for fit in fits[:KEPT]:
        x = m.vectors(fit.recipe, range(len(texts)))[:, : b.shape[1]]
        yield Explanation(fit.cause, fit.detail, unit(x) if m.view.pipeline.normalizes else x)


class Fit(NamedTuple):
    """A recipe whose vectors lie nearer to the candidate's, by its error."""

    error: float
    order: int
    cause: str
    detail: str
    recipe: Recipe

    def behind(self, first: Fit) -> Fit:
        """Both causes together."""
        causes, details = f"{first.cause} and {self.cause}", f"{first.detail}; {self.detail}"
        return Fit(self.error, self.order + 1000, causes, details, self.recipe)


def _fits(m: Ingredients, base: Recipe, probes: Sequence[int], b: np.ndarray, most: float) -> list[Fit]:
    """The recipes whose vectors lie nearer to the probes' b than `most`, the best first, or one that is exact."""
    fits, few = list[Fit](), probes[:FIRST]
    far = m.error(base, few, b[:FIRST])
    for order, (cause, detail, recipe) in enumerate(variants(m, base)):
        if m.error(recipe, few, b[:FIRST]) >= far:
            continue
        error = m.error(recipe, probes, b)
        if error < most:
            fits.append(Fit(error, order, cause, detail, recipe))
        if error < EXACT * most:
            return fits[-1:]
    return sorted(fits)


def _probes(moved: np.ndarray, lengths: Sequence[int]) -> list[int]:
    """Texts that moved most, some that moved least, and one of those between, short ones where there are; those that
    moved most stand first."""
    sizes = np.asarray(lengths)
    short = np.flatnonzero(sizes <= max(SHORT, int(np.sort(sizes)[min(PROBES, len(sizes)) - 1])))
    order = short[np.argsort(-moved[short], kind="stable")]
    most, least = PROBES // 2, PROBES // 4
    middle = order[most : len(order) - least]
    chosen = [*order[:most], *middle[:: max(1, len(middle) // 2)][:2], *order[len(order) - least :]]
    # the longest, where it alone can tell: a cut, or padding
    if moved[short].max(initial=0) < moved.max() / 2:
        chosen += np.argsort(-moved, kind="stable")[:2].tolist()
    return sorted({int(i) for i in chosen}, key=lambda i: -moved[i])
