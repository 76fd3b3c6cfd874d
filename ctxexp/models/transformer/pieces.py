"""Sentences as a fast tokenizer's pieces, each unit knowing its pieces, and the prefix before each text. Pieces meet
words by character span.

A tokenizer says for each piece which characters of the text it covers; a corpus says the same of each word. A piece
belongs to every word that it shares a character with, which settles all the odd cases by one rule:

- a leading space in a piece's span (GPT-2, Llama) belongs to no word, so it changes nothing;
- byte-level pieces of one character all have that character's span: each belongs to its word;
- a piece that straddles two words counts for both;
- special tokens and pieces without characters (zero-width spans) belong to none;
- a word without a piece (a control character that the tokenizer drops) has no vector: it is left out of the units.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain, compress
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from ctxexp.dataset import Sentence
from ctxexp.errors import ConfigError, ModelError
from ctxexp.files.job_folder import read_json
from ctxexp.model import TextStart
from ctxexp.models.options import AS_TOKENIZER
from ctxexp.models.transformer.unused import Leftovers

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer
    from transformers import PreTrainedTokenizerBase


CHUNK = 1000  # sentences tokenised at a time
MARKER = "▁"  # SentencePiece's word marker: alone at a sentence's start, it claims the first character's span
KEPT = {"mean": slice(None), "first": slice(1), "last": slice(-1, None)}  # of a word's pieces, by the pooling
_BLANK = MARKER + "ĠĊĉčÂł \t\n\r\u00a0"  # white space as vocabularies spell it: a trimmed span of it is empty


@dataclass(frozen=True, slots=True)
class Pieces:
    """One sentence's pieces.

    `counts[i]` pieces of unit i follow each other in `at`, which holds positions in `ids`; the first `n_before` and
    the last `n_after` ids are the special tokens that enclose the text, `model.prefix` among the first.
    """

    ids: np.ndarray  # (n_pieces,) int32, special tokens included
    units: tuple[str, ...]
    at: np.ndarray  # (sum of counts,) int64
    counts: np.ndarray  # (len(units),) int64
    n_before: int
    n_after: int

    @property
    def text_ids(self) -> np.ndarray:
        """The ids of the text's own pieces."""
        return self.ids[self.n_before : len(self.ids) - self.n_after]

    def by_unit(self) -> list[np.ndarray]:
        """The positions of each unit's pieces."""
        return np.split(self.at, np.cumsum(self.counts)[:-1]) if len(self.counts) else []


class PieceCache:
    """Sentences' pieces between two uses: `lengths` reads them first, encoding takes them from here."""

    def __init__(self, read: Callable[[Sequence[Sentence]], list[Pieces]]) -> None:
        self._read, self._pieces = read, dict[Sentence, Pieces]()

    def peek(self, sentences: Sequence[Sentence]) -> list[Pieces]:
        """Each sentence's pieces, kept until they are taken."""
        unread = [s for s in dict.fromkeys(sentences) if s not in self._pieces]
        self._pieces.update(zip(unread, self._read(unread), strict=True))
        return [self._pieces[s] for s in sentences]

    def take(self, sentences: Sequence[Sentence]) -> list[Pieces]:
        """Each sentence's pieces, kept no longer."""
        read = self.peek(sentences)
        for sentence in sentences:
            self._pieces.pop(sentence, None)
        return read


class PieceReader:
    """Reads sentences with the fast tokenizer of a checkpoint, whose embedding table has `rows` rows (0: any number).

    Text is never cut (a checkpoint's own truncation and padding settings are turned off); special tokens are added as
    the tokenizer does by default (GPT-2's adds none), but that `prefix` stands before the text.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        *,
        pooling: str,
        source: str,
        rows: int = 0,
        prefix: str = AS_TOKENIZER,
    ) -> None:
        backend: Tokenizer | None = getattr(tokenizer, "backend_tokenizer", None)
        if backend is None:
            raise ModelError(
                f"{source}: its tokenizer ({type(tokenizer).__name__}) gives no character offsets, and words meet "
                "pieces by character span; a checkpoint with a fast tokenizer (tokenizer.json) is needed"
            )
        backend.no_truncation()
        backend.no_padding()
        self.backend, self.pooling, self.source, self.rows = backend, pooling, source, rows
        unknown = getattr(backend.model, "unk_token", tokenizer.unk_token)  # Unigram's model keeps it to itself
        self.unknown_id = None if unknown is None else backend.token_to_id(unknown)
        self.marker = backend.token_to_id(MARKER)
        self.prefix = prefix_of(prefix, tokenizer, source)
        self.cuts_left = tokenizer.truncation_side == "left"  # where a sentence vector's text is too long
        own = int(backend.num_special_tokens_to_add(False))
        # pieces of each sentence beside its text's
        self.n_special = own - len(self.prefix.tokenizer_ids) + len(self.prefix.ids)

    def __call__(self, sentences: Sequence[Sentence]) -> list[Pieces]:
        """Each sentence's pieces."""
        read: list[Pieces] = []
        for i in range(0, len(sentences), CHUNK):
            chunk = sentences[i : i + CHUNK]
            read += map(self._read, chunk, self.backend.encode_batch([sentence.text for sentence in chunk]))
        return read if self.prefix.is_default else [self.prefix.replace_start(pieces) for pieces in read]

    def count_unknown(self, read: Iterable[Pieces]) -> tuple[int, int]:
        """How many pieces of the sentences' text stand for anything unknown, and how many pieces they have."""
        ids = np.concatenate([np.empty(0, np.int32), *(pieces.text_ids for pieces in read)])
        return int(np.count_nonzero(ids == self.unknown_id)) if self.unknown_id is not None else 0, len(ids)

    def _read(self, sentence: Sentence, encoding: Encoding) -> Pieces:
        """The pieces of a sentence that the tokenizer has cut."""
        ids, spans = encoding.ids, [*encoding.offsets]
        plain = [i for i, is_special in enumerate(encoding.special_tokens_mask) if not is_special]
        self._check(ids, spans, plain)
        for i in plain:
            if ids[i] == self.marker and sentence.text[slice(*spans[i])] != MARKER:
                spans[i] = 0, 0
        units: tuple[str, ...]
        if self.pooling == "pieces":
            units, groups = piece_units(sentence, [spans[i] for i in plain]), [[i] for i in plain]
        else:
            every = overlapping_pieces(sentence.spans, {i: spans[i] for i in plain})
            units = sentence.words if all(every) else tuple(compress(sentence.words, every))
            groups = [own[KEPT[self.pooling]] for own in every if own]
        before, end = (plain[0], plain[-1] + 1) if plain else (len(ids), len(ids))
        at = np.fromiter(chain.from_iterable(groups), np.int64)
        counts = np.array([len(own) for own in groups], np.int64)
        return Pieces(np.array(ids, np.int32), units, at, counts, before, len(ids) - end)

    def _check(self, ids: Sequence[int], spans: Sequence[tuple[int, int]], plain: Sequence[int]) -> None:
        """Raise `ModelError` for pieces that the model has no row for, and for spans that can't be right."""
        most = max(ids, default=0)
        if self.rows and most >= self.rows:
            raise ModelError(
                f"{self.source}: its tokenizer gives the piece {self.backend.id_to_token(most)!r} the number "
                f"{most:,}, but the model's embedding table has {self.rows:,} rows; the two don't belong together"
            )
        for i in plain:
            if spans[i][0] < spans[i][1]:
                continue
            spelled = (self.backend.id_to_token(ids[i]) or "").strip(_BLANK)
            if spelled:
                raise ModelError(
                    f"{self.source}: its tokenizer says that the piece {spelled!r} covers no character "
                    f"{spans[i]}, so words can't meet their pieces (huggingface/tokenizers issue "
                    "1688); save the tokenizer anew with a current version of tokenizers, or use another checkpoint"
                )


def piece_units(sentence: Sentence, spans: Iterable[Sequence[int]]) -> tuple[str, ...]:
    """The unit's name of each piece, where every piece is a unit, from its (start, end) in characters of the text.

    A name is the text that the piece covers, without white space around it, whatever the tokenizer's own spelling
    ("Ġthe", "âĢĶ"), so that punctuation is known as such and ` the` is the `the` that begins a sentence. "##" stands
    before a piece that doesn't begin a word (`un`, `##able`), and before the further pieces of one character; a piece
    of white space, or of nothing, is "▁".
    """
    begins, before, units = {start for start, _ in sentence.spans}, -1, []
    for start, end in spans:
        covered = sentence.text[start:end]
        text = covered.strip()
        if not text:
            units.append(MARKER)
            continue
        start += len(covered) - len(covered.lstrip())
        units.append(text if start in begins and start != before else f"##{text}")
        before = start
    return tuple(units)


@dataclass(frozen=True)
class Prefix:
    """The pieces before each text: `tokenizer_ids` are those that the tokenizer adds by itself, `ids` those that stand
    there instead.

    `begin` and `end` bound the pieces in `ids` that `model.prefix` added: they are excluded from sentence vectors.
    """

    tokenizer_ids: tuple[int, ...]
    ids: tuple[int, ...]
    begin: int
    end: int
    start: TextStart

    @property
    def is_default(self) -> bool:
        """Whether text begins as the tokenizer lets it begin by itself."""
        return self.ids == self.tokenizer_ids

    def __str__(self) -> str:
        """The prefix's part of the vectors' cache key; empty for the tokenizer's own prefix."""
        return "" if self.is_default else f" prefix={','.join(map(str, self.ids)) or 'none'}"

    def replace_start(self, pieces: Pieces) -> Pieces:
        """Replace what the tokenizer put before the text of one sentence by this prefix."""
        n = min(len(self.tokenizer_ids), len(pieces.ids))
        after = pieces.n_before + pieces.n_after - n  # all special pieces of an empty text count as before it
        ids = np.concatenate([np.array(self.ids, pieces.ids.dtype), pieces.ids[n:]])
        return replace(pieces, ids=ids, at=pieces.at + len(self.ids) - n, n_before=len(self.ids), n_after=after)


def prefix_of(choice: str, tokenizer: PreTrainedTokenizerBase, source: str) -> Prefix:
    """The prefix that `model.prefix=choice` stands for with this tokenizer.

    `as_tokenizer`: the special pieces that it adds by itself, if any; `none`: nothing; `bos`: its `bos_token`, or
    `cls_token` where it has none, once, before the tokenizer's special pieces; any other value is a text: its pieces
    follow the special ones.

    Raises ModelError for `bos` where the tokenizer has neither, ConfigError for a prefix that the tokenizer makes no
    piece of.
    """
    backend: Tokenizer = tokenizer.backend_tokenizer
    sample = backend.encode("a")
    mask = [*sample.special_tokens_mask, 0]
    own = tuple(sample.ids[: mask.index(0)])
    added: tuple[int, ...] = ()
    if choice == "bos":
        token = tokenizer.bos_token or tokenizer.cls_token
        number = backend.token_to_id(token) if token else None
        if number is None:
            raise ModelError(
                f"model.prefix=bos: the tokenizer of {source} has neither a bos_token nor a cls_token; give the text "
                "that is to stand first, such as model.prefix=., or leave model.prefix=as_tokenizer"
            )
        added = (number,) if own[:1] != (number,) else ()
    elif choice not in (AS_TOKENIZER, "none"):
        added = tuple(backend.encode(choice, add_special_tokens=False).ids)
        if not added:
            raise ConfigError(f"model.prefix={choice!r}: the tokenizer of {source} makes no piece of it; give another")
    if choice == "none":
        return Prefix(own, (), 0, 0, TextStart((), "prefix" if own else "tokenizer"))
    ids = (*added, *own) if choice == "bos" else (*own, *added)
    begin = 0 if choice == "bos" else len(own)
    tokens = tuple(str(backend.id_to_token(i)) for i in ids)
    whose: Literal["tokenizer", "prefix", "both"] = "tokenizer"
    if added:
        whose = "both" if own else "prefix"
    return Prefix(own, ids, begin, begin + len(added), TextStart(tokens, whose))


def overlapping_pieces(words: Sequence[tuple[int, int]], pieces: Mapping[int, tuple[int, int]]) -> list[list[int]]:
    """Of each word the pieces that share a character with it, by their numbers, in order.

    `words` and `pieces` are (start, end) in characters; word spans ascend and don't overlap, pieces may lie anywhere.

    Example:
        >>> overlapping_pieces([(0, 2), (3, 6)], {0: (0, 1), 1: (1, 2), 2: (2, 6)})
        [[0, 1], [2]]
    """
    ends = [end for _, end in words]
    of_words: list[list[int]] = [[] for _ in words]
    for piece, (start, end) in pieces.items():
        for i in range(bisect_right(ends, start), len(words)):
            if words[i][0] >= end or start >= end:
                break
            if words[i][0] < words[i][1]:  # one of no characters shares none
                of_words[i].append(piece)
    return of_words


def windows(n: int, size: int, stride: int) -> np.ndarray:
    """Starts of windows of `size` pieces that together cover `n` (more than `size`) pieces; the last one ends at n.

    Example:
        >>> windows(10, 4, 2).tolist()
        [0, 2, 4, 6]
    """
    starts = np.arange(0, n - size, stride)
    return np.append(starts, n - size)


def best_window(n: int, starts: np.ndarray, size: int, *, causal: bool) -> np.ndarray:
    """For each of `n` pieces the window that shows it the most context; the earlier one if two do equally.

    Context is the distance to the nearer edge of the window, where an edge that is the sentence's own cuts nothing;
    a causal model sees the left side alone.
    """
    piece = np.arange(n)
    first = np.searchsorted(starts, piece - size, side="right")  # the windows that hold a piece are neighbours
    last = np.searchsorted(starts, piece, side="right") - 1
    window = first[:, None] + np.arange(int((last - first).max()) + 1)  # (n, few)
    start = starts[np.minimum(window, len(starts) - 1)]
    left = np.where(start == 0, n, piece[:, None] - start)
    right = np.where(start + size == n, n, start + size - 1 - piece[:, None])
    context = left if causal else np.minimum(left, right)
    return np.asarray(first + np.argmax(np.where(window <= last[:, None], context, -1), axis=1))


# each rule of a tokenizer at work: case, accents, digits, blanks, Chinese, compatible forms
PROBE = (
    "The na\u00efve Caf\u00c9's  42 dogs, I'LL pay 5,678 $\n\n (in Z\u00fcrich)\t\u2014 \u6f22\u5b57 \uff21\ufb01 don't"
)


def apply_tokenizer_files(tokenizer: PreTrainedTokenizerBase, folder: Path | None, lower: bool | None) -> Leftovers:
    """Make the tokenizer read text as the folder's tokenizer.json does, whatever class its settings name: transformers
    builds some fifty classes anew from vocabulary and merges, and loses what else the file says. Without the file the
    vocabulary tells whether capitals count, where no setting does. `lower` has the last word on these. Without a
    `folder` the tokenizer is its caller's, and reads as it does.

    Returns:
        A loss is a vocabulary whose capitals no text reaches; doubts are files that say otherwise than tokenizer.json.
    """
    from tokenizers import Tokenizer

    backend, losses, doubts = getattr(tokenizer, "backend_tokenizer", None), list[str](), list[str]()
    if backend is None:
        return Leftovers(losses, doubts)
    if not folder or not (folder / "tokenizer.json").is_file():
        if lower is None and (reason := _unreachable(backend)):
            losses.append(f"{reason} (model.lower=false: text as it is; model.lower=true: in lower case)")
            if folder:
                lower = read_json(folder / "tokenizer_config.json").get("do_lower_case", not lower_cases(backend))
    elif type(tokenizer).__module__.startswith("transformers."):  # any other is code that the user trusts
        own = Tokenizer.from_file(str(folder / "tokenizer.json"))
        doubts += [f"{name}: tokenizer.json reads otherwise, and it counts" for name in _others(folder, own, backend)]
        backend = tokenizer._tokenizer = own
        for role, piece in tokenizer.special_tokens_map.items():
            if isinstance(piece, str) and backend.token_to_id(piece) is None:  # a default of the class
                setattr(tokenizer, role, None)
    if lower is not None:
        tokenizer._tokenizer = _with_case(backend, lower)
    return Leftovers(losses, doubts)


def _others(folder: Path, own: Tokenizer, built: Tokenizer) -> list[str]:
    """What beside tokenizer.json (`own`) says otherwise how text is read: settings, the tokenizer that transformers
    `built` by them, other files of the vocabulary, a normaliser."""
    for tokenizer in (own, built):
        tokenizer.no_truncation()
        tokenizer.no_padding()
    settings, special = read_json(folder / "tokenizer_config.json"), own.encode("a").special_tokens_mask
    normalize = own.normalizer.normalize_str if own.normalizer is not None else str
    facts = {
        "do_lower_case": lower_cases(own),
        "strip_accents": normalize("\u00e9").lower() == "e",
        "tokenize_chinese_chars": " " in normalize("\u6f22"),
        "add_prefix_space": own.encode("a", add_special_tokens=False).tokens[:1] != ["a"],
        "add_bos_token": special[:1] == [1],
        "add_eos_token": special[-1:] == [1],
        "split_special_tokens": own.encode_special_tokens,
    }
    named = [
        f"{key}={settings[key]} of tokenizer_config.json"
        for key, fact in facts.items()
        if settings.get(key) is (not fact)
    ]
    vocabularies = {name: read_json(folder / name) for name in ("added_tokens.json", "vocab.json")}
    file = folder / "vocab.txt"
    if file.is_file():
        lines = file.read_text(encoding="utf-8").rstrip("\n").split("\n")
        vocabularies[file.name] = {piece: i for i, piece in enumerate(lines)}
    named += [n for n, pieces in vocabularies.items() if any(own.token_to_id(p) != i for p, i in pieces.items())]
    named += [
        f"the normaliser of {file.name}"
        for file in folder.glob("*.model")
        if any(normalize(c).strip(_BLANK) == c != _sentencepiece_normalizer(file)(c) for c in "\uff21\ufb01\u2460A")
    ]
    added = [piece["content"] for piece in settings.get("added_tokens_decoder", {}).values()]
    probe = " ".join([PROBE, *vocabularies["added_tokens.json"], *added])
    if not named and own.encode(probe).ids != built.encode(probe).ids:
        named.append("the tokenizer that transformers builds of these files")
    return named


def _sentencepiece_normalizer(file: Path) -> Callable[[str], str]:
    """How a model of sentencepiece rewrites characters before it cuts them into pieces; not at all if it is none."""
    from tokenizers.normalizers import Precompiled
    from transformers.convert_slow_tokenizer import import_protobuf

    with suppress(Exception):  # each version of protobuf has an exception of its own for what it can't parse
        proto = import_protobuf().ModelProto.FromString(file.read_bytes())
        return Precompiled(proto.normalizer_spec.precompiled_charsmap).normalize_str
    return str


def _unreachable(backend: Tokenizer) -> str:
    """How the tokenizer hides its vocabulary's capitals by lower-casing, or has none for text that keeps its own; empty
    where it does neither."""
    vocabulary = backend.get_vocab().keys() - {piece.content for piece in backend.get_added_tokens_decoder().values()}
    if "\u0120" in vocabulary:  # bytes are spelled as letters, most of them capitals
        vocabulary = {piece for piece in vocabulary if piece.isascii()}
    capitals = sorted(piece for piece in vocabulary if piece != piece.lower())
    if lower_cases(backend) and 100 * len(capitals) > len(vocabulary):  # a few are an uncased one's symbols
        return f"{len(capitals):,} pieces with capitals ({capitals[-1]!r}), since the tokenizer lower-cases text"
    if not lower_cases(backend) and not capitals and any(piece != piece.upper() for piece in vocabulary):
        return "capitals of text, which no piece has, and the tokenizer doesn't lower-case"
    return ""


def lower_cases(backend: Tokenizer) -> bool:
    """Whether the tokenizer lower-cases text."""
    return backend.normalizer is not None and backend.normalizer.normalize_str("A").endswith("a")


def _with_case(backend: Tokenizer, lower: bool) -> Tokenizer:
    """The same tokenizer, which lower-cases text or leaves it as it is."""
    from tokenizers import Tokenizer

    state = json.loads(backend.to_str())
    own = state["normalizer"] or {"type": "Sequence", "normalizers": []}
    steps = [step for step in own.get("normalizers", [own]) if step["type"] != "Lowercase"]
    bert = [step for step in steps if step["type"] == "BertNormalizer"]
    for step in bert:
        step["lowercase"] = lower
    if lower and not bert:
        steps.insert(0, {"type": "Lowercase"})
    state["normalizer"] = {"type": "Sequence", "normalizers": steps}
    changed = Tokenizer.from_str(json.dumps(state))
    if lower_cases(changed) != lower:
        raise ModelError(f"model.lower={lower}: its tokenizer lower-cases by a table of its own; leave lower out")
    return changed
