"""A model is loaded to encode, not to be named: what stands in for it says and does the same."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest

from ctxexp import EncodedSentence, Encoder, Sentence, measure
from ctxexp.models.lazy_encoder import DESCRIPTION_KEYS, LazyEncoder, lazy_encoder
from tests.shipped import bert, elmo, gpt2

Loaded = tuple[Callable[..., Encoder], list[str]]
TEXT = [Sentence.of(["The", "bank"]), Sentence.of(["was"])]


class Ones(Encoder):
    """Of so many layers, all one."""

    dim, n_layers, layers = 2, 9, (0, 4, 8)
    name = "ones"
    details = MappingProxyType({"checkpoint": "none", "layers": 2, "causal": False})
    own = "its class's"

    def encode(self, batch: Sequence[Sentence]) -> Iterator[EncodedSentence]:
        for sentence in batch:
            yield EncodedSentence(sentence.words, np.ones((3, len(sentence), 2), np.float32))

    def lengths(self, sentences: Sequence[Sentence]) -> list[int]:
        return [7 for _ in sentences]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CTXEXP_CACHE", str(tmp_path))
    return tmp_path


@pytest.fixture
def loaded(cache: Path) -> Loaded:
    """What asks for the encoder of some parts, and a list that grows whenever it is loaded."""
    times = []

    def load() -> Encoder:
        times.append("loaded")
        return Ones()

    return partial(lazy_encoder, load=load, device="cpu"), times


def test_what_was_loaded_once_is_loaded_again_to_encode_only(
    loaded: Loaded,
) -> None:
    ask, times = loaded
    first, second = ask("a"), ask("a")
    assert isinstance(first, Ones)
    assert isinstance(second, LazyEncoder)
    for key in (*DESCRIPTION_KEYS, "poolings", "corpus", "layer_numbers"):
        assert getattr(second, key) == getattr(first, key), key
    assert len(times) == 1
    assert second.lengths(TEXT) == [7, 7]
    assert [one.units for one in second.encode(TEXT)] == [("The", "bank"), ("was",)]
    assert second.own == "its class's"
    assert len(times) == 2


def test_a_run_whose_vectors_are_cached_loads_nothing(loaded: Loaded) -> None:
    ask, times = loaded
    text = ["The old bank", "The bank was wet", "A bank", "The river was old"]
    first, second = (
        measure(ask("a"), text, metrics=["anisotropy", "word_norm"], options=["min_contexts=2"]) for _ in range(2)
    )
    assert (first.info.encoded, second.info.encoded) == (4, 0)
    assert times == ["loaded"]
    assert first.info.model == second.info.model
    assert first.by_name.keys() == second.by_name.keys()


def test_other_parts_damage_and_odd_devices_load_the_encoder(loaded: Loaded, cache: Path) -> None:
    ask, times = loaded
    ask("a")
    (path,) = cache.glob("encoders/*")
    assert not isinstance(ask("b"), LazyEncoder)
    (another,) = {*cache.glob("encoders/*")} - {path}
    for text in ("", "[]", "{}", "\0", another.read_text()):
        path.write_text(text)
        assert not isinstance(ask("a"), LazyEncoder), text
    assert not isinstance(ask("a", device="cuda:0"), LazyEncoder)
    assert len(times) == 8
    assert isinstance(ask("a"), LazyEncoder)


def test_the_shipped_models_are_named_without_their_libraries(cache: Path) -> None:
    """A run whose vectors are cached starts in a fraction of the time; the names are those that loading gives."""
    names = [make().name for make in (bert, gpt2, elmo, partial(bert, weights="untrained", seed=3))]
    code = (
        "import sys; from ctxexp.models.huggingface import bert; from ctxexp.models.huggingface import gpt2\n"
        "from ctxexp.models.elmo import elmo; from ctxexp.models.lazy_encoder import LazyEncoder\n"
        "made = [bert(), gpt2(), elmo(), bert(weights='untrained', seed=3)]\n"
        "assert all(isinstance(one, LazyEncoder) for one in made)\n"
        "assert not {'torch', 'transformers', 'tokenizers', 'h5py', 'scipy'} & set(sys.modules), 'heavy'\n"
        "print(*(one.name for one in made), sep='|')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "|".join(names), done.stderr
    assert bert(weights="untrained", seed=4).name not in names
