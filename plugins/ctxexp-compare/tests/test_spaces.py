"""The very same occurrences whatever the tokenizer; runs, sweeps, models and arrays; what is refused and how."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from ctxexp_compare import Cka, Space, compare, similarities
from ctxexp_compare.alignment import align
from ctxexp_compare.interface import parse_measures, run_folders

import ctxexp
from ctxexp import CtxexpError
from ctxexp.errors import ConfigError, DataError, MetricError
from tests.composed import run_command_line
from tests.shipped import mini

SENTENCES = [
    "The bank of the river was wet.",
    "The bank raised the rate of interest.",
    "A river runs past the old bank.",
    "The old house of the bank stood by the river.",
    "The rate of the river is slow.",
    "An old man fished from the bank of a river.",
]
OPTIONS = ["min_contexts=2", "bootstrap=50"]


class Lettered(ctxexp.Encoder):
    """A word's vector tells the word and its sentence by letters; `drop` are words that get none, as of a tokenizer."""

    def __init__(self, name: str, *, drop: str = "", pieces: bool = False, dim: int = 6) -> None:
        self.name, self.drop, self.pieces, self.dim, self.n_layers = name, drop, pieces, dim, 2
        self.title = name

    def encode(self, batch: Sequence[ctxexp.Sentence]) -> Iterable[ctxexp.EncodedSentence]:
        for sentence in batch:
            kept = [word for word in sentence.words if word != self.drop]
            rows = [np.resize([ord(c) for c in f"{word}{sentence.text}"], self.dim) for word in kept]
            layers = np.stack([np.array(rows), np.array(rows) * [len(sentence)]]).astype(np.float32)
            units = [f"{word}#" for word in kept] if self.pieces else kept
            yield ctxexp.EncodedSentence(tuple(units), layers)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CTXEXP_CACHE", str(tmp_path_factory.getbasetemp() / "compare"))


def lettered(name: str, sentences: Sequence[str] = SENTENCES, **choices: object) -> Space:
    return Space.of_model(Lettered(name, **choices), list(sentences), options=OPTIONS)  # type: ignore[arg-type]


def test_rows_are_the_same_characters_whoever_read_them() -> None:
    """One model has no vector for "the", the other read the sentences backwards, with more and fewer of them."""
    one = lettered("one", SENTENCES[:5], drop="the")
    other = lettered("other", [*SENTENCES[:0:-1], "Nobody else has this sentence."], dim=4)
    sample, (a, b), common = align([one, other], sample=1000, seed=0, null="free")
    assert common == len(sample) == sum(len(s.rstrip(".").split()) - s.split().count("the") for s in SENTENCES[1:5])
    for i in range(2):  # the vectors of what was matched spell the same words and sentences
        x, y = one.layers.layer(i)[a], other.layers.layer(i)[b]
        assert (x[:, :4] == y).all()
    assert sample.unit == "sentence"
    assert len(np.unique(sample.blocks)) == 4


def test_the_sample_hangs_on_text_alone() -> None:
    one, other = lettered("one"), lettered("other", SENTENCES[::-1], dim=4)

    def spelled(*pair: Space, sample: int = 9, seed: int = 3) -> set[tuple[int, ...]]:
        rows = align(list(pair), sample=sample, seed=seed)[1][0]
        return {tuple(row) for row in pair[0].layers.layer(0)[rows][:, :4].astype(int).tolist()}

    assert spelled(one, other) == spelled(other, one) != spelled(one, other, seed=4)
    assert spelled(one, other, sample=5) < spelled(one, other)


def test_a_models_space_is_what_a_run_measures() -> None:
    options = [*OPTIONS, "transform=center", "control=no_first"]
    space = Space.of_model(Lettered("one"), SENTENCES, options=options)
    plain = lettered("one")
    assert len(space.rows) == len(plain.rows) - len(SENTENCES)
    assert np.abs(space.layers.layer(1)[space.rows].mean(0)).max() < 1e-3
    found = similarities([space, plain], [Cka()], sample=100, bootstrap=20)
    assert len({place.label for place in found.places}) == 2
    assert found.common == len(space.rows)


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results folder of a sweep."""
    folder = tmp_path_factory.mktemp("sweep")
    (folder / "text.txt").write_text("\n".join(SENTENCES))
    words = f"-m model=elmo weights=mini,untrained dataset=text dataset.path={folder / 'text.txt'}"
    words += " sink=none metric=anisotropy tracking.folder=mlruns min_contexts=2 bootstrap=50"
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("CTXEXP_CACHE", str(tmp_path_factory.getbasetemp() / "compare"))
        assert run_command_line(words.split()) == 0
    [found] = (folder / "mlruns" / "results").iterdir()
    return found


@pytest.mark.slow
def test_verb_and_face_give_the_same_numbers(sweep: Path, tmp_path: Path) -> None:
    assert run_command_line(["compare", str(sweep), "sample=40", f"out={tmp_path / 'out'}"]) == 0
    by_verb = pd.read_csv(tmp_path / "out" / "compare.csv")
    models = "elmo", "elmo weights=untrained"
    by_face = compare(*models, text=sweep.parents[2] / "text.txt", options=OPTIONS, sample=40, progress=False).frame
    pd.testing.assert_frame_equal(by_verb, by_face, check_dtype=False, rtol=1e-12)
    assert set(by_verb.measure) == {"cka", "mutual_knn", "information_imbalance"}
    assert {"compare_cka.png", "compare_cka.svg"} <= {path.name for path in (tmp_path / "out").iterdir()}


@pytest.mark.slow
def test_runs_opened_one_by_one_are_the_sweeps(sweep: Path) -> None:
    jobs = sorted(path.parent for path in sweep.glob("*/config.yaml"))
    assert run_folders(str(sweep)) == jobs
    assert run_folders(str(jobs[0])) == [jobs[0]]
    assert run_folders(str(mini("gpt2"))) == run_folders("owner/name") == []  # models
    whole = compare(sweep, measures="cka", sample=40, progress=False)
    apart = compare(*jobs[::-1], measures="cka", sample=40, progress=False)
    order = [apart.places.index(place) for place in whole.places]
    assert whole.matrices["cka"].value == pytest.approx(apart.matrices["cka"].value[np.ix_(order, order)], abs=1e-6)


REFUSED: list[tuple[Callable[[], object], type[CtxexpError], str]] = [
    (lambda: parse_measures("mutual_knn k=x"), ConfigError, "mutual_knn k=x: expected k=<number>"),
    (lambda: run_folders(str(Path(__file__).parent)), ConfigError, "holds no run"),
    (lambda: Space.of_arrays("a", np.zeros((1, 3, 2)), words=["b"]), MetricError, "1 words and 3 blocks for 3 rows"),
    (lambda: compare(lettered("a"), measures="mutual_knn k=99"), DataError, "mutual_knn k=99 needs 101 occurrences"),
    (
        lambda: compare(lettered("a"), lettered("b", ["Not a word is the same."] * 2 + ["Nor here, or there."])),
        DataError, "0 occurrences are common to a (48), b (10)",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "words"), REFUSED, ids=[words[:40] for _, _, words in REFUSED])
def test_what_cannot_be_compared_is_refused_in_a_sentence(
    call: Callable[[], object], error: type[CtxexpError], words: str
) -> None:
    with pytest.raises(error) as refused:
        call()
    assert words in str(refused.value)
