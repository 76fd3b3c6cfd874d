"""Finding the sinks of a text: every piece of every sentence through the model, with its norms and its attention."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ctxexp import Encoder, Sentence
from ctxexp.command import Experiment, configured
from ctxexp.errors import ConfigError, DataError
from ctxexp_compare.attention_sinks.sinks import FACTOR, KINDS, SHARE, Sinks, norm_ratios, received_attention
from ctxexp_compare.space import Texts

SENTENCES = 200


def sinks(
    model: str | Encoder,
    text: Texts | None = None,
    *,
    options: str | Sequence[str] = (),
    sentences: int = SENTENCES,
    factor: float = FACTOR,
    share: float = SHARE,
) -> Sinks:
    """Find a model's sinks in a text, wherever they stand.

    Args:
        model: A name that the command knows, or an encoder, of a model of transformers.
        text: Sentences, as in `ctxexp.measure`; None: the embedded ones.
        options: Further arguments of the command line for the model.
        sentences: How many are read at most, the first of the text; longer ones than the model's window are left out.
        factor: Times a layer's median norm from which on a piece is a sink; above 1.
        share: Attention drawn beyond an even share from which on it is one, mean over heads and queries; in (0, 1).

    Returns:
        Every piece's scores, and which are sinks.

    Raises:
        ConfigError: A model that isn't of transformers, or a factor or share out of range.
        DataError: No sentence fits the model's window.

    Example:
        >>> found = sinks("gpt2", ["The bank of the river was wet.", "A bank lends money."])
        >>> found.kinds.tolist()[:2], len(found.is_sink)
        (['first', 'later'], 14)
    """
    if not factor > 1 or not 0 < share < 1:
        raise ConfigError(f"factor={factor}, share={share}: expected a factor above 1 and a share between 0 and 1")
    experiment = Experiment(configured(model, text, options))
    encoder: Any = experiment.encoder
    if getattr(encoder, "model", None) is None or getattr(encoder, "tokenizer", None) is None:
        raise ConfigError(
            f"sinks are looked for in the pieces of a model of transformers, and {experiment.title} isn't one; "
            "control=no_sinks leaves out words of extreme norm of any model"
        )
    chosen = list(dict.fromkeys(experiment.corpus.sentences))[:sentences]
    pieces = encoder.read_pieces(chosen)
    window = encoder.window or np.inf
    fitting = [i for i, own in enumerate(pieces) if 0 < len(own.ids) <= window]
    if not fitting:
        raise DataError(f"{experiment.title}: none of {len(chosen)} sentences fits its window of {window} pieces")
    norms, drawn = [], []
    with attention_kernel(encoder.model) as gives_attention:
        for i in fitting:
            own_norms, own_drawn = _scores(encoder, pieces[i].ids, gives_attention=gives_attention)
            norms.append(own_norms)
            drawn.append(own_drawn)
    known = [one for one in drawn if one is not None]
    names, spans, kinds, units = zip(*(_piece_facts(encoder, chosen[i], pieces[i]) for i in fitting), strict=True)
    return Sinks(
        title=experiment.title,
        sentences=tuple(chosen[i] for i in fitting),
        sentence=np.repeat(np.arange(len(fitting)), [len(pieces[i].ids) for i in fitting]),
        place=np.concatenate([np.arange(len(pieces[i].ids)) for i in fitting]),
        tokens=np.concatenate(names),
        spans=np.concatenate(spans),
        kinds=np.concatenate(kinds),
        units=np.concatenate(units),
        ratios=norm_ratios(np.concatenate(norms, axis=1)),
        attention=np.concatenate(known, axis=1) if len(known) == len(drawn) else None,
        factor=factor,
        share=share,
    )


def _scores(encoder: Any, ids: np.ndarray, *, gives_attention: bool) -> tuple[np.ndarray, np.ndarray | None]:
    """Norms (layers, n) of a sentence's pieces, and the attention that they draw (layers, n): NaN in layer 0, which has
    none; None where the model gives none."""
    import torch

    asked = torch.from_numpy(ids[None].astype(np.int64)).to(encoder.model.device)
    with torch.inference_mode():
        out = encoder.model(input_ids=asked, output_hidden_states=True, output_attentions=gives_attention)
    layers = (*out.hidden_states[:-1], out.last_hidden_state)
    norms = np.stack([layer[0].float().norm(dim=1).cpu().numpy() for layer in layers])
    weights = [one for one in out.get("attentions") or () if one is not None]
    if not gives_attention or len(weights) != len(layers) - 1:
        return norms, None
    drawn = [received_attention(one[0].float().cpu().numpy(), causal=bool(encoder.causal)) for one in weights]
    return norms, np.stack([np.full(len(ids), np.nan), *drawn])


def _piece_facts(encoder: Any, sentence: Sentence, pieces: Any) -> tuple[Any, ...]:
    """Of each piece its name, its characters (start, end), its kind, and the unit that it is part of (-1: none)."""
    n, end = len(pieces.ids), len(pieces.ids) - pieces.n_after
    tokens = [encoder.tokenizer.id_to_token(int(i)) or f"#{i}" for i in pieces.ids]
    spans = np.zeros((n, 2), np.int64)
    encoding = encoder.tokenizer.encode(sentence.text)
    own = [at for at, special in zip(encoding.offsets, encoding.special_tokens_mask, strict=True) if not special]
    if len(own) == end - pieces.n_before:
        spans[pieces.n_before : end] = own
    kinds = []
    for i in range(n):
        text = sentence.text[slice(*spans[i].tolist())]
        is_special = i < pieces.n_before or i >= end
        is_delimiter = not any(c.isalnum() for c in text)
        kinds.append(KINDS[0] if i == 0 else KINDS[1] if is_special else KINDS[2] if is_delimiter else KINDS[3])
    units = np.full(n, -1, np.int64)
    units[pieces.at] = np.repeat(np.arange(len(pieces.counts)), pieces.counts)
    return np.array(tokens, object), spans, np.array(kinds, object), units


@contextmanager
def attention_kernel(model: Any) -> Iterator[bool]:
    """Use the kernel that gives attention weights inside the block; yields whether the model has one."""
    before = getattr(model.config, "_attn_implementation", None)
    try:
        model.set_attn_implementation("eager")
    except (AttributeError, ValueError, NotImplementedError):
        yield False
        return
    try:
        yield True
    finally:
        model.set_attn_implementation(before)
