"""Checks: planted causes are named, reruns aren't, pins are whole, servers are asked, and the status says so."""

from __future__ import annotations

import copy
import json
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from ctxexp_compare import Pin, Verdict, check, pin
from ctxexp_compare.light.files import read_matrix
from ctxexp_compare.light.server import Server
from ctxexp_compare.light.vectors import changed_neighbours, from_vectors, unit
from ctxexp_compare.light.verdict import REMEDIES, judge, symptom
from safetensors.numpy import load_file, save_file
from tokenizers import Tokenizer, normalizers
from transformers import AutoModel, AutoTokenizer

import ctxexp
from benchmarks import checks as bench
from ctxexp.command import Experiment, configured
from ctxexp.errors import ConfigError, DataError
from tests.composed import run_command_line
from tests.seeds import daily_seed
from tests.servers import Speak, serving
from tests.shipped import mini, polysemy

HOW_TO = Path(__file__).parents[3] / "docs" / "how-to" / "choose-and-check-a-model.md"
RNG = np.random.default_rng(0)
VECTORS = unit(RNG.normal(size=(120, 64)) + RNG.normal(size=64))
ROTATION = np.linalg.qr(RNG.normal(size=(64, 64)))[0]
ORDER = np.array([1, 0, *range(2, 120)])


# vectors alone


@pytest.mark.parametrize(
    ("change", "verdict", "cause", "rounding"),
    [
        (lambda x: x.astype(np.float32), "same", "", ""),
        (lambda x: x.astype(np.float16), "rounded", "", "float16"),
        (lambda x: torch.from_numpy(x).bfloat16().float().numpy(), "rounded", "", "bfloat16"),
        (lambda x: x + RNG.normal(size=x.shape) * 0.05 / 8, "rounded", "", "8bit"),
        (lambda x: x + RNG.normal(size=x.shape) * 0.2 / 8, "rounded", "", "4bit"),
        (lambda x: np.round(x * 127 / np.abs(x).max(axis=1, keepdims=True)), "different", "normalising", "bfloat16"),
        (lambda x: 3 * x, "different", "normalising", ""),
        (lambda x: x[:, :16], "different", "dimensions cut", ""),
        (lambda x: unit(x[:, -32:]), "different", "dimensions cut", ""),
        (lambda x: x[:, ::-1], "different", "dimensions permuted", ""),
        (lambda x: x[ORDER], "different", "rows swapped", ""),
        (lambda x: x @ ROTATION, "different", "rotated", ""),
        (lambda x: np.where(np.arange(len(x))[:, None] < 9, 0, x), "different", "rows missing", ""),
        (lambda x: RNG.normal(size=x.shape), "different", "", ""),
    ],
)
def test_what_vectors_alone_show(change: Callable[[Any], Any], verdict: str, cause: str, rounding: str) -> None:
    b = change(VECTORS)
    found = judge(VECTORS, b, from_vectors(VECTORS, b))
    assert (found.verdict, found.cause, found.rounding) == (verdict, cause, rounding)
    assert found.passes() == (verdict == "same")
    assert found.passes("4bit") == (verdict in ("same", "rounded"))
    assert bool(found.remedy) == bool(cause) == (cause in REMEDIES)


def test_the_effects_on_neighbours_and_thresholds() -> None:
    a, rng = VECTORS, np.random.default_rng(1)
    assert changed_neighbours(a, 2 * a[:, ::-1]) == (0, 0, 0, 120)
    replaced = changed_neighbours(a, rng.normal(size=a.shape))
    assert replaced.value == pytest.approx(1 - 10 / 119, abs=0.03)
    assert replaced.low < replaced.value < replaced.high
    equal = np.repeat(a[:1], 40, axis=0)  # without an order
    assert changed_neighbours(equal, equal + rng.normal(size=equal.shape) * 1e-12) == (0, 0, 0, 40)
    assert changed_neighbours(a[:5], a[:5]) is None
    searched = changed_neighbours(a, a, (a[:7], a[:7]))
    assert searched == (0, 0, 0, 7)
    assert check(a, a, cosine=0.65).cosine.cosine == pytest.approx(0.65)  # type: ignore[union-attr]
    assert "as many pairs" not in " ".join(check(a, a, cosine=0.65).sentences)
    assert "answers none: fewer than" in " ".join(check(a, a, cosine=0.999).sentences)
    assert check(a[:30], a[:30], cosine=0.5).cosine is None  # of so few texts


def test_texts_of_a_kind_that_alone_moved() -> None:
    texts = ["all low", "With Capitals", "caf\u00e9", "a long one"]
    assert symptom(texts, [2, 2, 1, 9], np.array([0, 0, 0, 1.0]), 1e-5)[0] == "text cut"
    assert symptom(texts, [2, 2, 2, 2], np.array([0, 1.0, 0, 0]), 1e-5) == (
        "tokenizer",
        "texts with capitals alone differ",
    )
    assert symptom(texts, [2, 2, 2, 2], np.array([0, 0, 1.0, 0]), 1e-5)[1].startswith("texts with letters beyond ASCII")
    assert symptom(texts, [2, 2, 2, 2], np.ones(4), 1e-5) == ("", "")


def test_files_of_vectors_are_read(tmp_path: Path) -> None:
    import pandas as pd

    x = VECTORS[:5].astype(np.float32)
    np.save(tmp_path / "a.npy", x)
    np.savez(tmp_path / "a.npz", embeddings=x, ids=np.arange(5))
    save_file({"embeddings": x}, tmp_path / "a.safetensors")
    pd.DataFrame({"text": list("abcde"), "embedding": list(x)}).to_parquet(tmp_path / "a.parquet")
    for name in ("a.npy", "a.npz", "a.safetensors", "a.parquet"):
        assert np.array_equal(np.asarray(read_matrix(tmp_path / name)), x), name
        assert check(x, tmp_path / name).verdict == "same"
    from safetensors.torch import save_file as save_tensors

    save_tensors({"embeddings": torch.from_numpy(x).bfloat16()}, tmp_path / "b.safetensors")
    assert check(x, tmp_path / "b.safetensors").rounding == "bfloat16"
    np.savez(tmp_path / "layers.npz", s0=np.zeros((2, 3, 4)), s1=np.zeros((2, 5, 4)))
    assert read_matrix(tmp_path / "layers.npz") is None
    with pytest.raises(DataError, match="no such file"):
        check(x, tmp_path / "none.npy")
    with pytest.raises(DataError, match="has 5 rows, the array 4"):
        check(tmp_path / "a.npy", x[:4])
    with pytest.raises(DataError, match="text=: which texts"):
        check("bert", x)


# causes, by a model


class Pipelines(NamedTuple):
    """Those of the benchmark, of a mini, and their encoders by the folder."""

    plain: bench.Pipeline
    full: bench.Pipeline
    encoders: dict[Path, ctxexp.Encoder]

    def check(self, pipeline: bench.Pipeline, candidate: Any, texts: list[str] = bench.TEXTS) -> Verdict:
        return check(self.encoders[pipeline.folder], candidate, text=texts)


@pytest.fixture(scope="module")
def pipelines(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Pipelines]:
    def make(name: str) -> Pipelines:
        folder = tmp_path_factory.mktemp(name)
        plain, full = (bench.Pipeline(name, str(mini(name)), folder, is_full=is_full) for is_full in (False, True))
        encoders = {one.folder: Experiment(configured(str(one.folder))).encoder for one in (plain, full)}
        return Pipelines(plain, full, encoders)

    return cache(make)


@pytest.mark.parametrize("name", ["bert", pytest.param("gpt2", marks=pytest.mark.nightly)])
def test_planted_faults_of_a_pipeline_are_named(name: str, pipelines: Callable[[str], Pipelines]) -> None:
    """All of the benchmark's that vectors alone don't show, of a mini; computed by transformers alone."""
    made = pipelines(name)
    assert made.check(made.plain, made.plain.vectors(bench.TEXTS)).verdict == "same"
    for fault, (cause, pipeline, candidate) in bench.planted(made.plain, made.full).items():
        if cause in ("normalising", "dimensions cut", "dimensions permuted", "rows swapped"):
            continue
        found = made.check(pipeline, candidate)
        assert cause in found.cause.split(" and "), (fault, found.sentences)
        assert found.remedy


def test_two_causes_together_are_both_named(pipelines: Callable[[str], Pipelines]) -> None:
    """One behind the other; where nothing fits, no cause is."""
    made, texts = pipelines("bert"), bench.TEXTS[:12]
    full = made.full
    plants = {
        "pooling and prompt": {"read": partial(full.ids, prompt=""), "pool": partial(full.pool, pooling="cls")},
        "another layer and prompt": {"read": partial(full.ids, prompt="query: "), "layer": 2},
    }
    for causes, plant in plants.items():
        found = made.check(full, full.vectors(texts, **plant), texts)
        assert sorted(found.cause.split(" and ")) == sorted(causes.split(" and ")), found.sentences
        assert found.remedy.count("; ") == 1
    turned = full.vectors(texts, layer=1)[:, ::-1] + full.vectors(texts)
    assert made.check(full, turned, texts).cause == ""


def test_a_model_in_memory_is_asked_as_it_serves(pipelines: Callable[[str], Pipelines]) -> None:
    """Of sentence-transformers, on either side, and whose queries' neighbours change."""
    library = pytest.importorskip("sentence_transformers", reason="the library sentence-transformers is not installed")
    full = pipelines("bert").full
    texts, queries = [one.text for one in polysemy().sentences[:20]], ["the bank?", "a river", "which key is mine"]
    model = library.SentenceTransformer(str(full.folder), device="cpu")
    assert check(str(full.folder), model, text=texts).verdict == "same"
    assert check(model, str(full.folder), text=texts).verdict == "same"
    model.default_prompt_name = None
    found = check(str(full.folder), model, text=texts, queries=queries)
    assert (found.verdict, found.cause, found.is_search) == ("different", "prompt", True)
    assert found.neighbours.n == 3
    assert "3 queries" in " ".join(found.sentences)
    with pytest.raises(DataError, match="which files and pins can't give"):
        check(str(full.folder), full.vectors(texts), text=texts, queries=queries)


# servers


def rows_of(texts: list[str]) -> list[list[float]]:
    return [np.random.default_rng(abs(hash(text)) % 2**32).normal(size=8).tolist() for text in texts]


def indexed(vectors: list[Any]) -> list[dict[str, Any]]:
    return [{"index": i, "embedding": x} for i, x in enumerate(vectors)][::-1]


PROTOCOLS: dict[str, Callable[[Any], Any]] = {
    "/v1/embeddings": lambda body: {"data": indexed(rows_of(body["input"]))},
    "/api/embed": lambda body: {"embeddings": rows_of(body["input"])},
    "/embed": lambda body: rows_of(body["inputs"]),
    "/embeddings": lambda body: {"data": indexed(rows_of(body["input"]))},
    "/embedding": lambda body: indexed([[x, x] for x in rows_of(body["content"])]),
}


@pytest.fixture
def serve() -> Iterator[Callable[[Speak], Any]]:
    with ExitStack() as servers:
        yield lambda speak: servers.enter_context(serving(speak))


@pytest.mark.parametrize("path", PROTOCOLS)
def test_every_protocol_is_found_and_read(path: str, serve: Any) -> None:
    texts = [f"text {i}" for i in range(70)]
    server = serve(
        lambda asked, body: (200, PROTOCOLS[path](body)) if asked == path else (404, {"detail": "Not Found"})
    )
    assert check(np.array(rows_of(texts)), server.url.removeprefix("http://"), text=texts).verdict == "same"
    for url in (server.url, server.url + path):
        assert Server(url, model="mine")(texts) == pytest.approx(np.array(rows_of(texts)))
    assert (
        max(len(next(v for v in body.values() if isinstance(v, list))) for _, body, _ in server.requests if body) == 32
    )
    assert check(np.array(rows_of(texts)), server.url, text=texts).verdict == "same"


def test_a_key_is_sent_and_never_shown(serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVER_KEY", "sesame-123")
    other = serve(lambda path, body: (200, {"data": indexed(rows_of(body["input"]))}))
    for status, answer in ((401, {"error": "sesame-123 is no key"}), (302, other.url), (200, "no vectors sesame-123")):
        server = serve(lambda *_, status=status, answer=answer: (status, answer))
        with pytest.raises(OSError, match=r"127\.0\.0\.1") as caught:
            Server(server.url + "/v1/embeddings", "mine", "SERVER_KEY")(["a"])
        assert "sesame" not in str(caught.value)
        assert server.requests[-1][2]["Authorization"] == "Bearer sesame-123"
    assert not other.requests  # no key follows a redirection
    with pytest.raises(DataError, match="no such environment variable"):
        check(VECTORS, server.url, text=["a"], key="NOT_THERE")
    assert Server("http://me:pass@host/x?key=secret").title == "http://host/x"
    with pytest.raises(DataError, match="no server answers there"):
        check(VECTORS[:1], "http://127.0.0.1:9", text=["a"])


ASKED = [f"text {i}" for i in range(40)]
SERVED = np.array(rows_of(ASKED))
FAULTS: dict[str, tuple[Callable[[np.ndarray], np.ndarray], str]] = {  # of a request's vectors, and the cause
    "all of a request go in": (lambda x: x + x.mean(axis=0) * (len(x) > 1), "batch that leaks"),
    "the first alone is right, as by llama.cpp": (lambda x: x + np.vstack([0 * x[:1], x[:-1]]), "batch that leaks"),
    "none twice": (lambda x: x + 0.01 * np.random.default_rng().normal(size=x.shape), "unstable"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_a_server_does_to_requests(fault: str, serve: Any) -> None:
    change, cause = FAULTS[fault]
    server = serve(lambda path, body: (200, {"data": indexed(change(np.array(rows_of(body["input"]))).tolist())}))
    found = check(SERVED, server.url, text=ASKED)
    assert (found.cause, found.remedy) == (cause, REMEDIES[cause])
    assert (check(SERVED, server.url, text=ASKED, batch=1).verdict == "same") == (cause == "batch that leaks")


def test_texts_that_a_server_refuses_are_told(serve: Any) -> None:
    def strict(path: str, body: Any) -> tuple[int, Any]:
        if any(text.endswith("7") for text in body["input"]):
            return 413, {"error": "too long"}
        return 200, {"data": indexed(rows_of(body["input"]))}

    found = check(SERVED, serve(strict).url, text=ASKED)
    assert found.verdict == "same"
    assert found.notes == ("note: 4 of 40 texts are refused, maybe as too long",)


# pins and layers


def unchanged(_: object) -> None:
    """Leave a model or tokenizer as it is."""


Change = Callable[[Any], object]


class Original:
    """A model of transformers with its tokenizer; `encoder` gives a changed copy's."""

    def __init__(self, folder: str) -> None:
        self.model = AutoModel.from_pretrained(folder, dtype=torch.float32).eval()
        self.folder = folder

    def encoder(self, change: Change = unchanged, retokenize: Change = unchanged, **options: Any) -> ctxexp.Encoder:
        """The encoder after a change of the model, of the tokenizer, or with other options."""
        model, tokenizer = copy.deepcopy(self.model), AutoTokenizer.from_pretrained(self.folder)
        with torch.no_grad():
            change(model)
        retokenize(tokenizer)
        return ctxexp.from_transformers(model, tokenizer, name="planted", **options)


def swap_blocks(model: Any) -> None:
    blocks = model.encoder.layer
    blocks[2], blocks[3] = blocks[3], blocks[2]


def widen_epsilon(model: Any) -> None:
    model.encoder.layer[0].attention.output.LayerNorm.eps = 0.1


def round_all(model: Any) -> None:
    for weight in model.encoder.parameters():
        if weight.ndim == 2:
            most = weight.abs().amax(1, keepdim=True)
            weight.copy_(torch.round(weight / most * 127) * (most / 127))


def strip_accents(tokenizer: Any) -> None:
    tokenizer.backend_tokenizer.normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents()])


def swap_pieces(tokenizer: Any) -> None:
    settings = json.loads(tokenizer.backend_tokenizer.to_str())
    vocabulary = settings["model"]["vocab"]
    a, b = sorted(vocabulary, key=vocabulary.get)[len(vocabulary) // 2 :][:2]
    vocabulary[a], vocabulary[b] = vocabulary[b], vocabulary[a]
    tokenizer._tokenizer = Tokenizer.from_str(json.dumps(settings))


PLANTED: dict[str, tuple[dict[str, Any], str, str]] = {  # what is changed, the cause, and words of it
    "blocks swapped": ({"change": swap_blocks}, "weights", "32 of 71 tensors changed (encoder.layer.2."),
    "a norm": (
        {"change": lambda m: m.encoder.layer[-1].output.LayerNorm.weight.mul_(1.02)},
        "weights",
        "output.LayerNorm.weight",
    ),
    "epsilon": ({"change": widen_epsilon}, "", "all weights are what they were"),
    "int8": ({"change": round_all}, "", "rounded, as 8bit would"),
    "accents": ({"retokenize": strip_accents}, "tokenizer", "texts have other pieces"),
    "pieces": ({"retokenize": swap_pieces}, "tokenizer", "another vocabulary"),
    "window": ({"retokenize": lambda t: setattr(t, "model_max_length", 100)}, "text cut", "window 128 -> 100"),
    "pooling": ({"pooling": "last"}, "pooling", "pooling mean -> last"),
}


@pytest.fixture(scope="module")
def original() -> Original:
    return Original(str(mini("bert")))


PINNED = [*(sentence.text for sentence in polysemy().sentences[:12]), "Zo\u00eb's caf\u00e9"]


@pytest.fixture(scope="module")
def pinned(original: Original) -> Pin:
    return pin(original.encoder(), text=PINNED)


def arrays(layers: np.ndarray) -> ctxexp.Encoder:
    """Vectors (layers, 40, d) of four sentences."""
    words = [[f"w{i}" for i in range(j, j + 10)] for j in range(0, 40, 10)]
    return ctxexp.from_arrays(np.split(layers, 4, axis=1), words)


@pytest.mark.parametrize("name", PLANTED)
def test_planted_changes_of_a_model_are_named(name: str, original: Original, pinned: Pin) -> None:
    change, cause, words = PLANTED[name]
    found = check(pinned, original.encoder(**change))
    assert not found.passes(), name
    assert found.cause == cause, found.sentences
    assert words in " ".join(found.sentences)


def planted_pipelines(network: Path) -> dict[str, tuple[Any, str, str]]:
    """A pipeline under "", which is unchanged, and changed ones, each with the cause and a part of what is said."""
    from tests.pipelines import PROMPT, dense, modules, pipeline

    def made(behind: Any = (), **changes: Any) -> Any:
        behind = behind or (dense(), modules.Normalize())
        return pipeline(network, *behind, **({"max_seq_length": 30} | PROMPT | changes))

    one_weight, redrawn = dense(), made()
    with torch.no_grad():
        one_weight.linear.weight[3, 5] += 0.05
        next(iter(redrawn[0].parameters()))[7:9] *= 1.1
    norm, order = modules.Normalize(), (modules.Normalize(), dense())
    other = {"prompts": {"query": "the river: "}, "default_prompt_name": "query"}
    return {
        "": (made(), "", "same"),
        "projection": (made([dense(seed=1), norm]), "weights", "2_Dense.linear.weight"),
        "one weight": (made([one_weight, norm]), "weights", "1 of 41 tensors changed (2_Dense.linear.weight)"),
        "activation": (
            made([dense(activation_function=torch.nn.Identity()), norm]),
            "projection",
            "2_Dense activation",
        ),
        "bias": (made([dense(bias=False), norm]), "projection", "2_Dense bias True -> -"),
        "prompt": (made(**other), "prompt", "sentence prompt 'the bank: ' -> 'the river: '"),
        "no prompt": (made(default_prompt_name=None), "prompt", "sentence prompt 'the bank: ' -> ''"),
        "a prompt more": (made(prompts=PROMPT["prompts"] | {"fact": "x"}), "prompt", "sentence prompt fact - -> 'x'"),
        "cls": (made(mode="cls"), "pooling", "sentence mode mean -> cls"),
        "not normalised": (made([dense()]), "projection", "Dense, Normalize -> Transformer, Pooling, Dense"),
        "order": (made(order), "projection", "Transformer, Pooling, Dense, Normalize -> "),
        "fewer columns": (made(truncate_dim=6), "", "sentence width 8 -> 6"),
        "shorter": (made(max_seq_length=20), "text cut", "sentence window 30 -> 20"),
        "prompt not pooled": (made(include_prompt=False), "pooling", "sentence include_prompt True -> False"),
        "lower-cased": (made(do_lower_case=True), "tokenizer", "texts have other pieces"),
        "network": (redrawn, "weights", "embeddings.word_embeddings.weight"),
    }


def test_changes_of_a_pipeline_are_named(tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers", reason="the library sentence-transformers is not installed")
    from tests.pipelines import saved
    from tests.tiny_models import encoder, make

    every, reference = planted_pipelines(make("bert", tmp_path / "bert")), None
    for name, (model, cause, words) in every.items():
        made = encoder(saved(model, tmp_path / f"model {name}"))
        reference = reference or pin(made, text=PINNED)
        found = check(reference, made, batch=7)
        assert found.verdict == ("different" if name else "same"), (name, found.sentences)
        assert words in found.sentences[0], (name, found.sentences)
        if cause:
            assert found.cause == cause, (name, found.sentences)


def test_a_pin_is_small_and_read_back_whole(pinned: Pin, original: Original, tmp_path: Path) -> None:
    file = tmp_path / "bert.pin"
    assert pinned.save(file) < 50_000
    read = Pin.load(str(file))
    assert np.array_equal(read.vectors, pinned.vectors)
    assert (read.texts, read.lengths, read.noise) == (pinned.texts, pinned.lengths, pinned.noise)
    assert json.loads(json.dumps(pinned.facts)) == read.facts
    assert check(read, original.encoder(), batch=5).verdict == "same"
    assert check(file, pinned.vectors).verdict == "same"
    assert check(file, pinned.vectors[:, ::-1]).cause == "dimensions permuted"
    data = file.read_bytes()
    for damaged in (data[:-200], data[:5000] + b"\0" * 100 + data[5100:], b"", b"no archive"):
        file.write_bytes(damaged)
        with pytest.raises(DataError, match=r"bert.pin is no pin, or damaged .* make it anew: ctxexp pin MODEL"):
            check(file)
    with pytest.raises(DataError, match=r"no such file: .*other.pin"):
        check(tmp_path / "other.pin")


def test_vectors_of_words_are_compared_where_a_model_has_none_of_texts() -> None:
    x = np.random.default_rng(0).normal(size=(5, 40, 16)).astype(np.float32)
    reference = arrays(x)
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(16, 16)))[0]
    cases = {
        "rotated (lengths and cosines": x @ turn,
        "normalising (lengths are 2 times": 2 * x,
    }
    for words, changed in cases.items():
        found = check(reference, arrays(changed.astype(np.float32)))
        assert found.verdict == "different"
        assert words in found.sentences[0], (words, found.sentences)
    found = check(reference, arrays(x * np.float32(1 + 1e-6)))
    assert found.verdict == "same"


def test_changes_that_no_vector_shows_are_told(pinned: Pin, original: Original) -> None:
    """An embedding row outside of the pinned text, and a position behind its end."""
    encoder = original.encoder()
    pieces = {number for one in encoder.tokenizer.encode_batch(list(pinned.texts)) for number in one.ids}
    row = int(np.random.default_rng(daily_seed()).choice(sorted({*range(original.model.config.vocab_size)} - pieces)))
    changes = {
        "embeddings.word_embeddings.weight": lambda m: m.embeddings.word_embeddings.weight[row, 0].add_(1e-3),
        "embeddings.position_embeddings.weight": lambda m: m.embeddings.position_embeddings.weight[-1].zero_(),
    }
    for name, change in changes.items():
        found = check(pinned, original.encoder(change))
        assert (found.verdict, found.cause) == ("different", "weights"), (name, row)
        assert f"1 of 71 tensors changed ({name}), which no vector of these texts shows" in found.detail


def test_a_word_that_no_text_has_is_told_in_a_file_of_vectors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("text.txt").write_text("\n".join(sentence.text for sentence in polysemy().sentences[:6]))
    words = sorted({word for sentence in polysemy().sentences[:6] for word in sentence.words})
    Path("words.vec").write_text("".join(f"{word} {i} 1\n" for i, word in enumerate([*words, "unseen"])))
    assert run_command_line(["pin", "word_vectors model.path=words.vec", "out=a.pin", "text=text.txt"]) == 0
    assert run_command_line(["check", "a.pin"]) == 0
    Path("words.vec").write_text(Path("words.vec").read_text().replace("unseen ", "unseen 1"))
    capfd.readouterr()
    assert run_command_line(["check", "a.pin"]) == 1
    assert "tensors changed (the file's content)" in capfd.readouterr().out


def test_mistakes_are_answered(pinned: Pin, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ConfigError, match="has its own text"):
        check(pinned, "bert", text=["a"])
    pinned.save(tmp_path / "bert.pin")
    for args, words in {
        ("check", str(tmp_path / "bert.pin")): "is of a model in memory: name one",
        ("check", "bert"): "ctxexp check MODEL bert",
        ("passport", "v.npz", "gpt2", "text=a.txt"): "ctxexp check MODEL FILE text=TEXT",
        ("diff", "bert", "gpt2", "margin=.1"): "ctxexp check A B",
    }.items():
        assert run_command_line(list(args)) == 2
        assert words in capfd.readouterr().err


def test_own_texts_need_no_library_that_finds_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "icu4py", None)
    monkeypatch.setitem(sys.modules, "icu4py.breakers", None)
    assert len(pin("random_words").texts) > 40


def test_the_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    Path("text.txt").write_text("The bank of the river was wet.\nA bank lends money to Zoë's uncle, you know.\n" * 2)
    assert run_command_line(["pin", "gpt2", "text=text.txt"]) == 0
    said = capfd.readouterr().out
    assert re.match(r"2 texts, \d+ kB; reruns move vectors by at most .*\ngpt2.pin$", said)
    assert run_command_line(["check", "gpt2.pin"]) == 0
    assert capfd.readouterr().out.startswith("same: vectors differ by ")
    assert run_command_line(["check", "gpt2.pin", "options=model.final_norm=false", "out=check.csv"]) == 1
    assert capfd.readouterr().out.startswith("different: before the norm (final_norm True -> False); ")
    assert len(Path("check.csv").read_text().splitlines()) == 2
    half = ["check", "gpt2", "gpt2", "dtype=bfloat16", "text=text.txt"]  # the candidate's, not the reference's
    assert run_command_line(half) == 1
    assert capfd.readouterr().out.startswith("rounded, as bfloat16 would: ")
    half = ["check", "gpt2.pin", "gpt2 dtype=bfloat16"]
    assert run_command_line([*half, "rounding=bfloat16", "json=true"]) == 0
    document = json.loads(capfd.readouterr().out)
    assert document["tables"]["check"]["rows"][0]["verdict"] == "rounded"


@pytest.mark.slow
@pytest.mark.skipif(not HOW_TO.exists(), reason="needs the pages of the checkout")
def test_the_lines_of_the_action_catch_a_changed_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    block = next(
        text for text in re.findall(r"```yaml\n(.*?)```", HOW_TO.read_text(), re.DOTALL) if "ctxexp check" in text
    )
    lines = re.findall(r"run: (python -m ctxexp check .*)", block)
    assert len(lines) == 1
    shutil.copytree(mini("bert"), tmp_path / "model")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.txt").write_text("\n".join(sentence.text for sentence in polysemy().sentences[:6]))
    assert run_command_line(["pin", "huggingface model.checkpoint=./model", "out=model.pin", "text=text.txt"]) == 0
    assert run_command_line(lines[0].split()[3:]) == 0
    weights = load_file(tmp_path / "model" / "model.safetensors")
    name = next(name for name in sorted(weights) if name.endswith("layer.2.output.LayerNorm.weight"))
    weights[name] = weights[name] * np.array(1.01, weights[name].dtype)
    save_file(weights, tmp_path / "model" / "model.safetensors", metadata={"format": "pt"})
    capfd.readouterr()
    assert run_command_line(lines[0].split()[3:]) == 1
    assert "1 of 69 tensors changed (encoder.layer.2.output.LayerNorm.weight)" in capfd.readouterr().out
