"""`ctxexp.measure` gives what the command gives, from names, from objects and from arrays."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import ctxexp
from ctxexp import Control
from ctxexp.errors import MetricError
from ctxexp.results import Key, RunInfo
from tests.composed import run_command_line
from tests.shipped import Center, NoFirst, SelfSimilarity, Shuffled, Uniform, mini

SENTENCES = [
    "The bank of the river was wet.",
    "The bank raised the rate of interest.",
    "A river runs past the old bank.",
    "The old house of the bank stood by the river.",
    "The rate of the river is slow.",
    "An old man fished from the bank of a river.",
]
FAST = ["min_contexts=3", "bootstrap=20"]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CTXEXP_CACHE", str(tmp_path_factory.getbasetemp() / "face"))


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tracking folder of the command's own run of the sentences."""
    folder = tmp_path_factory.mktemp("command")
    (folder / "text.txt").write_text("\n".join(SENTENCES))
    places = [f"tracking.folder={folder / 'mlruns'}", f"cache.folder={folder / 'cache'}"]
    assert run_command_line(["bert", str(folder / "text.txt"), "sink=none", *places, *FAST]) == 0
    return folder


def same(a: ctxexp.Results, b: ctxexp.Results) -> None:
    assert a.by_name.keys() == b.by_name.keys()
    for key, curve in a.by_name.items():
        np.testing.assert_array_equal(curve, b.by_name[key], err_msg=key)


def test_a_measured_path_equals_the_commands_run_bit_for_bit(command: Path) -> None:
    here = ctxexp.measure("bert", command / "text.txt", options=FAST)
    (label, there), *others = ctxexp.runs(command / "mlruns", sweep="last").items()
    assert (label, others) == ("bert", [])
    same(here, there)
    assert there.info.corpus.fingerprint == here.info.corpus.fingerprint
    assert list(there.tables) == sorted(here.tables) or set(there.tables) == set(here.tables)
    same(ctxexp.load(next((command / "mlruns/results").glob("*/*"))), here)


def test_sentences_as_strings_words_or_a_corpus_are_one_text() -> None:
    from ctxexp.datasets import tokenizer

    read = tokenizer("english")
    corpus = ctxexp.Corpus("c", tuple(read(s) for s in SENTENCES))
    options = [*FAST, "metric=[self_similarity]"]
    first = ctxexp.measure("elmo", SENTENCES, options=options)
    same(first, ctxexp.measure("elmo", corpus, options=options))
    same(first, ctxexp.measure("elmo", corpus, metrics="self_similarity", options=FAST))
    same(first, ctxexp.measure("elmo", list(corpus.sentences), metrics=["self_similarity"], options=FAST))


def test_a_model_in_memory_equals_its_checkpoint_bit_for_bit() -> None:
    from transformers import AutoModel, AutoTokenizer

    folder = str(mini("gpt2"))
    model = ctxexp.from_transformers(
        AutoModel.from_pretrained(folder, dtype="float32"), AutoTokenizer.from_pretrained(folder), name="mine"
    )
    chosen = {"metrics": ["self_similarity", "max_explainable_variance"], "progress": False}
    mine = ctxexp.measure(model, SENTENCES, options=FAST, **chosen)
    theirs = ctxexp.measure("huggingface", SENTENCES, options=[*FAST, f"model.checkpoint={folder}"], **chosen)
    same(mine, theirs)
    for short in (folder, Path(folder)):
        same(theirs, ctxexp.measure(short, SENTENCES, options=FAST, **chosen))
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model_too = AutoModel.from_pretrained(folder, dtype="float32")
    same(theirs, ctxexp.measure(model_too, SENTENCES, tokenizer=tokenizer, options=FAST, **chosen))
    assert mine.info.title == "mine"
    assert model.name != theirs.info.model.encoder  # another key in the cache of vectors


def test_a_model_whose_tokenizer_was_changed_is_another_model() -> None:
    from tokenizers import normalizers
    from transformers import AutoModel, AutoTokenizer

    folder = str(mini("gpt2"))
    model, tokenizer = AutoModel.from_pretrained(folder, dtype="float32"), AutoTokenizer.from_pretrained(folder)
    taken = ctxexp.from_transformers(model, tokenizer, name="mine")
    assert ctxexp.from_transformers(model, tokenizer).name == taken.name
    tokenizer.backend_tokenizer.normalizer = normalizers.Lowercase()
    assert ctxexp.from_transformers(model, tokenizer).name != taken.name


class Mine(Control):
    name = "mine"


@pytest.mark.parametrize(
    ("part", "label", "said", "value"),
    [
        ({"transform": Center}, "elmo + Center", lambda info: info.transform.name, "Center"),
        ({"control": NoFirst(first=2)}, "elmo (no first 2 words)", lambda info: info.control, "no first 2 words"),
        ({"control": Mine()}, "elmo (mine)", lambda info: info.control, "mine"),
        ({"baseline": Uniform(size=5)}, "elmo", lambda info: info.baseline.name, "uniform"),
    ],
)
def test_parts_may_be_objects_with_names_of_their_own(
    part: dict[str, object], label: str, said: Callable[[RunInfo], str], value: str
) -> None:
    results = ctxexp.measure("elmo", SENTENCES, metrics="anisotropy", options=FAST, **part)
    assert results.info.title == label
    assert said(results.info) == value


def test_a_transform_object_equals_the_named_one_bit_for_bit() -> None:
    chosen = {"metrics": "self_similarity", "options": FAST, "progress": False}
    same(
        ctxexp.measure("elmo", SENTENCES, transform=Center, **chosen),
        ctxexp.measure("elmo", SENTENCES, transform="center", **chosen),
    )


def test_a_control_object_equals_the_named_one_bit_for_bit(command: Path) -> None:
    """Of the text that the command would read, too."""
    chosen = {"metrics": "self_similarity", "progress": False}
    options = [*FAST, "dataset=text", f"dataset.path={command / 'text.txt'}"]
    same(
        ctxexp.measure("elmo", control=Shuffled(how="order"), options=options, **chosen),
        ctxexp.measure("elmo", control="shuffled", options=[*options, "control.how=order"], **chosen),
    )


def test_arrays_are_measured_as_an_encoder_that_gives_them() -> None:
    rng = np.random.default_rng(0)
    words = [["the", "bank", "of", str(i)] for i in range(6)]
    vectors = [rng.normal(size=(2, 4, 8)).astype(np.float32) for _ in words]
    results = ctxexp.measure(ctxexp.from_arrays(vectors, words), metrics={"mine": SelfSimilarity}, options=FAST)
    unit = [x / np.linalg.norm(x, axis=-1, keepdims=True) for x in vectors]
    naive = []
    for layer in range(2):
        score = []
        for place in range(3):
            u = np.stack([x[layer, place] for x in unit]).astype(np.float64)
            score.append(((u @ u.T).sum() - 6) / 30)
        naive.append(np.mean(score))
    np.testing.assert_allclose(results.by_name["mine/raw"], naive, atol=1e-6)
    flat = ctxexp.from_arrays([x[0] for x in vectors], words)
    assert (flat.n_layers, flat.dim) == (1, 8)
    folded = ctxexp.from_arrays([x.reshape(4, 4, 4) for x in vectors], words)
    assert folded.name != ctxexp.from_arrays(vectors, words).name  # the same numbers, other layers


def test_docstring_and_listing_name_what_is_public() -> None:
    assert {name for name in ctxexp.__all__ if not re.search(rf"\b{name}\b", str(ctxexp.__doc__))} == set()
    for module in (ctxexp, ctxexp.command):  # their names are loaded when they are asked for
        assert dir(module) == sorted(module.__all__)
    names = {}
    exec("from ctxexp import *", names)
    assert {*names} - {"__builtins__"} == {*ctxexp.__all__}


def test_results_show_themselves_in_a_notebook(command: Path) -> None:
    (results,) = ctxexp.runs(command / "mlruns").values()
    html = results._repr_html_()
    value, low, high = (f"{float(ends[2]):.3f}" for ends in results.by_key[Key("self_similarity", "raw")])
    assert f"<td>{value}<br><small>[{low}, {high}]</small></td>" in html
    assert f"<td>{results['anisotropy'][2]:.3f}<br>" in html.partition(value)[2]  # the leading measure stands first
    assert results.curve("self_similarity").name == "self_similarity/raw"  # what figures show
    assert "&lt;b&gt;" in ctxexp.compare({"<b>": results})._repr_html_()
    both = ctxexp.compare([results, results])
    assert "bert #2" in both._repr_html_()
    assert set(both.frame.run) == {"bert", "bert #2"}
    for figure in (results.plot("self_similarity"), results.plot(), both.plot("anisotropy"), both.plot()):
        assert figure._repr_png_()[:4] == b"\x89PNG"


def test_curves_undefined_everywhere_are_not_drawn_but_explained() -> None:
    found = ctxexp.measure("bert", SENTENCES[:2], metrics="self_similarity", options=FAST)
    assert np.isnan(found.by_name["self_similarity/adjusted"]).all()
    for draw in (found.plot, partial(found.plot, "self_similarity"), ctxexp.compare([found, found]).plot):
        with pytest.raises(MetricError, match=r"nothing to draw: self_similarity is undefined .* lower min_contexts"):
            draw()
    assert "self_similarity" in found._repr_html_()
    assert ctxexp.compare([])._repr_html_()


def test_one_sentence_is_refused_before_torch_is_imported_and_hydra_never_is() -> None:
    code = """
import sys, ctxexp
try:
    ctxexp.measure("bert", [["a", "bank"]] * 9)
except ctxexp.CtxexpError as error:
    print(error)
print([name for name in ("torch", "hydra") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    message, imported = done.stdout.splitlines()
    assert "all measured words stand in 1 (equal sentences count once)" in message
    assert imported == "[]"
