"""Encoding a corpus into a store: once, in any order, undamaged by whatever happens on the way."""

from __future__ import annotations

import linecache
import os
import shutil
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from threading import Event, current_thread
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import ctxexp
from ctxexp import Corpus, EncodedSentence, Sentence
from ctxexp.errors import DataError, EncodingError, ModelError, StoreError
from ctxexp.files.code_version import code_version
from ctxexp.vectors import RowIndexBuilder
from ctxexp.vectors import cache as caches
from ctxexp.vectors import encoding as batched
from ctxexp.vectors.encoding import open_store
from tests.traced import Counted, corpus, vectors

ROOT = Path(__file__).parents[2]


def assert_holds(store: Any, made: Corpus) -> None:
    for i, sentence in enumerate(made.sentences):
        s = store.stored_of[i]
        own = slice(store.offsets[s], store.offsets[s + 1])
        assert [store.vocabulary[c] for c in store.unit_codes[own]] == list(sentence.words)
        assert store.positions[own].tolist() == list(range(len(sentence)))
        for layer in range(3):
            np.testing.assert_array_equal(store.layer(layer)[own], vectors(sentence).layers[layer])


def test_each_distinct_sentence_is_encoded_once_and_only_once(tmp_path: Path) -> None:
    made, encoder = corpus(), Counted()
    store = open_store(made, encoder, cache=tmp_path)
    seen = [s for batch in encoder.batches for s in batch]
    assert len(seen) == len(set(seen)) == len(set(made.sentences)) == store.n_encoded
    assert_holds(store, made)
    again = open_store(made, Counted(), cache=tmp_path)
    assert again.n_encoded == 0
    assert_holds(again, made)
    assert len(caches.entries(tmp_path)) == 1
    (entry,) = caches.entries(tmp_path)
    assert (entry.encoder, entry.corpus) == ("counted", "c")
    repeated = Corpus("twice", made.sentences * 2)  # the same distinct sentences in the same order
    assert open_store(repeated, Counted(), cache=tmp_path).n_encoded == 0
    assert open_store(made, Counted("other"), cache=tmp_path).n_encoded == store.n_encoded


def test_batches_are_of_equal_length_and_under_the_budget() -> None:
    lengths = np.random.default_rng(1).integers(0, 50, 500)
    batches = batched.equal_length_batches(lengths, 64)
    assert sorted(np.concatenate(batches).tolist()) == list(range(500))
    for batch in batches:
        assert len({int(n) for n in lengths[batch]}) == 1
        assert len(batch) == 1 or lengths[batch].sum() <= 64
    assert [lengths[b[0]] for b in batches] == sorted((lengths[b[0]] for b in batches), reverse=True)


def test_a_sequential_encoder_reads_the_corpus_once_in_order(tmp_path: Path) -> None:
    encoder = Counted()
    encoder.sequential = True  # type: ignore[attr-defined]
    made = corpus(100)
    store = open_store(made, encoder, cache=tmp_path)
    assert encoder.batches == [list(made.sentences)]  # repeated sentences too: their vectors may differ
    assert store.stored_of.tolist() == list(range(len(made.sentences)))
    assert_holds(store, made)


@pytest.mark.parametrize(
    ("units", "words", "positions"),
    [
        ("a", "a b a", [-1]),  # either of them
        ("b a", "a b a", [1, 2]),
        ("a b", "a b a", [0, 1]),
        ("a a c", "a b a a c", [-1, -1, 4]),
        ("", "a", []),
        ("a ##b", "ab", [-1, -1]),  # pieces
    ],
)
def test_a_units_position_is_unique_or_missing(tmp_path: Path, units: str, words: str, positions: list[int]) -> None:
    def leave_out(_: Sentence, one: EncodedSentence) -> EncodedSentence:
        kept = tuple(units.split())
        return EncodedSentence(kept, np.ones((3, len(kept), 4), np.float32))

    made = Corpus.of("c", [words.split()])
    store = open_store(made, Counted(change=leave_out), cache=tmp_path)
    assert store.positions.tolist() == positions
    assert store.n_skipped == (0 if "##" in units else len(words.split()) - len(units.split()))


def test_a_crash_midway_leaves_nothing_that_looks_whole(tmp_path: Path) -> None:
    made = corpus()
    for error in (RuntimeError("boom"), KeyboardInterrupt()):
        left = [25]

        def fail(
            sentence: Sentence, one: EncodedSentence, left: list[int] = left, error: BaseException = error
        ) -> EncodedSentence:
            left[0] -= 1
            if not left[0]:
                raise error
            return one

        expected = EncodingError if isinstance(error, Exception) else KeyboardInterrupt
        with pytest.raises(expected):
            open_store(made, Counted(change=fail), cache=tmp_path)
        assert caches.entries(tmp_path) == []
        assert not list(tmp_path.glob("tmp-*"))
    assert_holds(open_store(made, Counted(), cache=tmp_path), made)


SLOW = """
    import sys, time
    sys.path.insert(0, {root!r})
    from pathlib import Path
    from tests.traced import Counted, corpus
    from ctxexp.vectors.encoding import open_store
    def slow(sentence, one):
        print("x", flush=True)
        time.sleep(0.005)
        return one
    store = open_store(corpus(), Counted(change=slow), cache=Path({cache!r}))
    print("encoded", store.n_encoded)
"""


def start(cache: Path) -> subprocess.Popen[str]:
    code = textwrap.dedent(SLOW).format(root=str(ROOT), cache=str(cache))
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)


def test_kill_9_midway(tmp_path: Path) -> None:
    with start(tmp_path) as process:
        for _ in range(10):
            process.stdout.readline()
        os.kill(process.pid, signal.SIGKILL)
    assert list(tmp_path.glob("tmp-*"))
    assert caches.entries(tmp_path) == []
    store = open_store(corpus(), Counted(), cache=tmp_path)
    assert store.n_encoded > 0
    assert_holds(store, corpus())
    assert not list(tmp_path.glob("tmp-*"))


def test_two_processes_build_one_entry_once(tmp_path: Path) -> None:
    with start(tmp_path) as first, start(tmp_path) as second:
        outputs = [process.communicate()[0].split()[-1] for process in (first, second)]
    assert sorted(map(int, outputs)) == [0, len(set(corpus().sentences))]
    store = open_store(corpus(), Counted(), cache=tmp_path)
    assert store.n_encoded == 0
    assert_holds(store, corpus())


def test_an_entry_in_the_place_of_another_is_encoded_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    other = open_store(corpus(), Counted("other", change=wrong(layers=lambda x: 2 * x)), cache=tmp_path).path
    own = open_store(corpus(), Counted(), cache=tmp_path).path
    shutil.rmtree(own)
    other.rename(own)
    assert_holds(open_store(corpus(), Counted(), cache=tmp_path), corpus())
    assert "is damaged (it is another's): encoding it again" in caplog.text


def test_vectors_of_other_code_are_encoded_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = open_store(corpus(), Counted(), cache=tmp_path)
    monkeypatch.setattr("ctxexp.vectors.encoding.CODE", "01234567")
    again = open_store(corpus(), Counted(), cache=tmp_path)
    assert first.n_encoded == again.n_encoded > 0
    assert open_store(corpus(), Counted(), cache=tmp_path).n_encoded == 0
    monkeypatch.undo()
    assert open_store(corpus(), Counted(), cache=tmp_path).n_encoded == 0  # two versions may share a cache


MINE = """
from tests.traced import Counted

class Mine(Counted):
    width = 1

    def encode(self, batch):
        return super(Mine, self).encode(batch)
"""


@pytest.mark.parametrize(
    ("module", "edit"),
    [("mine", ("width = 1", "width = 2")), ("__main__", ("encode(batch)", "encode(list(batch))"))],
)
def test_an_encoder_whose_code_was_edited_encodes_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, edit: tuple[str, str]
) -> None:
    """Whoever edits a class rarely thinks of its name: of a package all files count, of a notebook the class."""
    encoded = []
    for i, text in enumerate((MINE, MINE, MINE.replace(*edit))):
        file = tmp_path / f"cell_{i}.py"
        file.write_text(text)
        held = ModuleType(module)
        held.__file__ = str(file)
        if module == "mine":
            monkeypatch.setitem(sys.modules, "mine", held)
        monkeypatch.setitem(linecache.cache, f"<cell {i}>", (len(text), None, text.splitlines(True), f"<cell {i}>"))
        exec(compile(text, f"<cell {i}>", "exec"), vars(held))  # as IPython runs a cell
        if i == 1:
            held.Mine().__reduce_ex__(2)  # pickling adds an attribute to the class
        encoded.append(open_store(corpus(), held.Mine(), cache=tmp_path / "cache").n_encoded > 0)
    assert encoded == [True, False, True]


def test_an_edit_of_code_that_decides_vectors_changes_the_key(tmp_path: Path) -> None:
    package = tmp_path / "ctxexp"
    own = Path(ctxexp.__file__).parent
    shutil.copytree(own, package, ignore=lambda _, names: [n for n in names if "." in n and not n.endswith(".py")])

    def version() -> str:
        code_version.cache_clear()
        return code_version(package)

    known = {version()}
    assert known == {code_version()}
    for name in ("models/transformer/pieces.py", "vectors/encoding.py", "model.py", "models/elmo/files.py"):
        (package / name).write_text((package / name).read_text("utf-8") + "\n", "utf-8")
        assert version() not in known, name
        known.add(version())
    for name in ("report/page/__init__.py", "measuring/__init__.py", "transforms.py"):
        (package / name).write_text("", "utf-8")
        assert version() in known, name


class Reusing(Counted):
    """Writes each sentence over the one before, in a buffer or one of several, and gives views of them."""

    def __init__(self, buffers: int = 1, *, together: bool = False, step: int = 0) -> None:
        super().__init__("reusing")
        self.buffers, self.together, self.step = np.zeros((buffers, 3, 99, 4), np.float32), together, step

    def encode(self, batch: Sequence[Sentence]) -> Iterable[EncodedSentence]:
        return list(self._views(batch)) if self.together else self._views(batch)

    def _views(self, batch: Sequence[Sentence]) -> Iterator[EncodedSentence]:
        for i, sentence in enumerate(batch):
            start = self.step * i
            view = self.buffers[i % len(self.buffers), :, start : start + len(sentence)]
            view[:] = vectors(sentence).layers
            yield EncodedSentence(sentence.words, view)


@pytest.mark.parametrize(("buffers", "step", "together"), [(2, 0, False), (1, 1, True)])
def test_views_of_a_buffer_that_is_used_again_are_refused(
    tmp_path: Path, buffers: int, step: int, together: bool
) -> None:
    encoder = Reusing(buffers, step=step, together=together)
    for tokens in (2048, 1):  # in one batch, and in the next, while the one before is written
        with pytest.raises(
            EncodingError, match=r"'reusing' gave two sentences vectors in the same memory.*: yield a c"
        ):
            open_store(corpus(), encoder, cache=tmp_path, batch_tokens=tokens)
    for each in (Reusing(9, together=together), Reusing(step=9, together=together)):  # nothing is written over
        made = Corpus.of("c", [(*"abcdefgh", c) for c in "stuvwxyz"])
        shutil.rmtree(tmp_path)
        assert_holds(open_store(made, each, cache=tmp_path), made)


class Ahead(Counted):
    """Reads a window of the text while it encodes the one before: it waits with that until the next one is read."""

    allows_prefetch = True

    def __init__(self, windows: int, *, odd: int = 99) -> None:
        super().__init__("ahead")
        self.read, self.odd, self.threads = [Event() for _ in range(windows)], odd, set[str]()

    def count_unknown(self, sentences: Sequence[Sentence]) -> tuple[int, int]:
        self.threads.add(current_thread().name)
        i = next(i for i, event in enumerate(self.read) if not event.is_set())
        self.read[i].set()
        return (1000 if i == self.odd else 1) * len(sentences), 10 * len(sentences)

    def encode(self, batch: Sequence[Sentence]) -> Iterable[EncodedSentence]:
        if not self.batches:  # the first window's
            assert self.read[min(1, len(self.read) - 1)].wait(30)
        return super().encode(batch)


def test_a_window_is_read_while_the_previous_is_encoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batched, "WINDOW", 20)
    made = corpus(60)
    n = len(set(made.sentences))
    encoder = Ahead(-(-n // 20))
    store = open_store(made, encoder, cache=tmp_path / "a", batch_tokens=30)
    assert_holds(store, made)
    assert (store.n_encoded, store.n_unknown_pieces, store.n_pieces) == (n, n, 10 * n)
    assert [event.is_set() for event in encoder.read] == [True] * 3
    assert encoder.threads == {"MainThread", "read_0"}
    assert len({len(s) for batch in encoder.batches for s in batch if len(batch) > 1}) > 3
    assert all(len({len(s) for s in batch}) == 1 for batch in encoder.batches)
    encoder = Ahead(3, odd=1)
    with pytest.raises(EncodingError, match=r"20,020 of the text's 400 pieces are unknown"):
        open_store(made, encoder, cache=tmp_path / "b")
    assert [path.name for path in (tmp_path / "b").iterdir()] == ["locks"]  # what was encoded is gone


def wrong(**changes: object) -> Callable[[Sentence, EncodedSentence], EncodedSentence]:
    def change(_: Sentence, one: EncodedSentence) -> EncodedSentence:
        return EncodedSentence(changes.get("units", one.units), changes.get("layers", lambda x: x)(one.layers))  # type: ignore[operator, arg-type]

    return change


def nan(layers: np.ndarray) -> np.ndarray:
    layers[1, 0, 2] = np.nan
    return layers


def test_messages(tmp_path: Path) -> None:
    def run(**changes: object) -> None:
        open_store(corpus(4), Counted("mine", change=wrong(**changes)), cache=tmp_path)

    with pytest.raises(EncodingError, match=r"'mine' gave an array of shape \(3, 7, 4\) for .* a unit's pieces pooled"):
        run(layers=lambda x: np.zeros((3, 7, 4), dtype=np.float32))
    with pytest.raises(EncodingError, match=r"encoder 'mine' gave NaN or infinite values in sentence \d, '"):
        run(layers=nan)
    kinds = iter([np.float32, *[np.float16] * 99])
    with pytest.raises(EncodingError, match=r"gave float16 vectors for sentence \d after float32 ones; one type a run"):
        run(layers=lambda x: (0 * x).astype(next(kinds)))
    with pytest.raises(DataError, match="corpus 'none' has no sentences"):
        open_store(Corpus.of("none", []), Counted(), cache=tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"the vector cache in .*file can't be used"):
        open_store(corpus(), Counted(), cache=tmp_path / "file")


def test_unknown_pieces_are_kept_with_the_vectors(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    made = corpus(5)
    store = open_store(made, Counted(), cache=tmp_path)
    assert (store.n_unknown_pieces, store.n_pieces) == (0, 0)
    encoder = Counted("says")
    encoder.count_unknown = lambda sentences: (len(sentences), 10 * len(sentences))  # type: ignore[method-assign]
    n = len(set(made.sentences))
    for encoded in (n, 0):  # anew, then from the cache
        store = open_store(made, encoder, cache=tmp_path)
        assert (store.n_encoded, store.n_unknown_pieces, store.n_pieces) == (encoded, n, 10 * n)
    caplog.clear()
    batched.warn_unknown(3, 100, "c")
    assert not caplog.messages
    batched.warn_unknown(4, 100, "c")
    assert caplog.messages[0].startswith("corpus c: 4 of 100 pieces are unknown to the model's tokenizer (4.0%)")
    encoder = Counted("nearly all")
    encoder.count_unknown = lambda sentences: (91, 100)  # type: ignore[method-assign]
    with pytest.raises(EncodingError, match=r"91 of the text's 100 pieces are unknown .* script of the model"):
        open_store(made, encoder, cache=tmp_path)
    assert not encoder.batches  # refused before anything is encoded
    encoder.count_unknown = lambda sentences: 7  # type: ignore[method-assign,assignment,return-value]
    with pytest.raises(
        EncodingError, match=r"could not read the corpus \(unknown\): TypeError: 'int' object is not iter"
    ):
        open_store(made, encoder, cache=tmp_path)


class Giving(Counted):
    """Gives so many results for a batch, and then raises."""

    def __init__(self, n: int, error: Exception | None = None) -> None:
        super().__init__("giving")
        self.n, self.error = n, error

    def encode(self, batch: Sequence[Sentence]) -> Iterable[EncodedSentence]:
        yield from map(vectors, [*batch, *batch][: self.n])
        if self.error:
            raise self.error


def test_errors_of_an_encoder_are_named_and_kept(tmp_path: Path) -> None:
    made, own = Corpus.of("c", [("a", "b"), ("c", "d")]), ZeroDivisionError("x")
    in_order = Giving(3)
    in_order.sequential = True  # type: ignore[attr-defined]
    for encoder, message in (
        (Giving(1, own), "encoder 'giving' failed on a batch of 2 sentences, after 1 of them, at 'c d'"),
        (Giving(1, ModelError("mine")), "mine"),
        (Giving(1), "'giving' gave 1 results for 2 sentences; expected one each, in order"),
        (Giving(3), "gave more than 2 results for 2 sentences"),
        (in_order, "gave more results than the 2 sentences"),
    ):
        with pytest.raises((EncodingError, ModelError), match=message) as caught:
            open_store(made, encoder, cache=tmp_path)
        assert encoder.error is not own or caught.value.__cause__ is own


def test_rows_find_their_tokens_by_their_words() -> None:
    """Of a sentence of which some words are stored, one whose units the encoder doesn't tell, and one with all."""
    rows_of, tokens = RowIndexBuilder(), np.array([[1, 2, 7], [3, 1, 8], [4, 5, 9]])
    rows_of.add(Sentence.of("abc"), ("a", "b", "c"), tokens, np.array([0, 2]))
    rows_of.add(Sentence.of("de"), ("d",), tokens)
    rows_of.add(Sentence.of("fgh"), ("f", "h"), tokens)
    assert rows_of.arrays()["tokens"].tolist() == [[1, 2, 7], [4, 5, 9], [-1, -1, -1], [1, 2, 7], [4, 5, 9]]
