"""The tokenizer of a checkpoint is the one that its files describe, whatever class they name."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tokenizers import AddedToken, Regex, Tokenizer, normalizers, pre_tokenizers, processors

from ctxexp import Sentence
from ctxexp.errors import ModelError
from tests import tiny_models
from tests.tiny_models import edit, encoder

PROBE = "The naïve Cafe\u0301's  42 dogs, I'LL pay 5,678,912 $\n\n RUNNING (in Zürich)\t— 漢字 👍🏽 don't ’tis"
CLASSES = {
    "bert": ("BertTokenizer", "FunnelTokenizerFast"),
    "gpt2": ("GPT2Tokenizer", "Qwen2Tokenizer", "RobertaTokenizer"),
    "llama": ("LlamaTokenizer", "GemmaTokenizerFast", "NoSuchTokenizer"),
    "t5": ("T5Tokenizer", "XLNetTokenizer"),
}


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CTXEXP_CACHE", str(tmp_path / "cache"))  # what a load says is said once


def digits(tokenizer: Tokenizer) -> None:
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(r"\d"), "isolated"), tokenizer.pre_tokenizer or pre_tokenizers.Whitespace()]
    )


def lower_case(tokenizer: Tokenizer) -> None:
    own = tokenizer.normalizer
    tokenizer.normalizer = normalizers.Sequence([normalizers.Lowercase(), *([own] if own is not None else [])])


def template(tokenizer: Tokenizer) -> None:
    piece, number = min(tokenizer.get_vocab().items(), key=lambda item: item[1])
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{piece} {piece} $A {piece}", special_tokens=[(piece, number)]
    )


def added(tokenizer: Tokenizer) -> None:
    tokenizer.add_tokens([AddedToken("dogs", lstrip=True, single_word=True)])


@pytest.mark.parametrize("changes", [(), (digits, lower_case, template, added)])
@pytest.mark.parametrize("kind", CLASSES)
def test_pieces_are_those_of_tokenizer_json_whatever_class_is_named(
    tmp_path: Path, kind: str, changes: tuple[Callable[[Tokenizer], None], ...]
) -> None:
    folder = tiny_models.make(kind, tmp_path / kind)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    for change in changes:
        change(tokenizer)
    tokenizer.save(str(folder / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    for name in CLASSES[kind]:
        edit(folder, "tokenizer_config.json", tokenizer_class=name)
        made = encoder(folder).tokenizer
        assert made.encode(PROBE).ids == tokenizer.encode(PROBE).ids, name
        assert made.encode(PROBE).offsets == tokenizer.encode(PROBE).offsets, name


@pytest.fixture
def cased(tmp_path: Path) -> Path:
    """A cased BERT as older checkpoints are: vocab.txt, and nothing that says how it is used."""
    folder = tiny_models.make("bert", tmp_path / "bert")
    vocabulary = Tokenizer.from_file(str(folder / "tokenizer.json")).get_vocab()
    (folder / "vocab.txt").write_text("".join(f"{piece}\n" for piece in sorted(vocabulary, key=vocabulary.get)))
    shutil.move(folder / "tokenizer.json", tmp_path / "tokenizer.json")
    (folder / "tokenizer_config.json").unlink()
    return folder


def test_capitals_of_a_vocabulary_are_reached(cased: Path, caplog: pytest.LogCaptureFixture) -> None:
    text = "The Dog deposited Money"
    expected = Tokenizer.from_file(str(cased.parent / "tokenizer.json"))
    expected.no_truncation()
    expected.no_padding()
    made = encoder(cased)
    assert made.tokenizer.encode(text).tokens == expected.encode(text).tokens
    assert "pieces with capitals ('" in caplog.text
    caplog.clear()
    with pytest.raises(ModelError, match=r"isn't used.* pieces with capitals .* lower-cases text \(model.lower=false"):
        encoder(cased, unused="refuse")
    said = encoder(cased, lower=False, unused="refuse")
    assert said.tokenizer.encode(text).tokens == expected.encode(text).tokens
    lowered = encoder(cased, lower=True)
    assert lowered.tokenizer.encode(text).tokens == expected.encode(text.lower()).tokens
    assert not caplog.text
    assert len({made.name, said.name, lowered.name}) == 3
    edit(cased, "tokenizer_config.json", do_lower_case=True)
    with pytest.raises(ModelError, match="pieces with capitals"):
        encoder(cased, unused="refuse")
    assert encoder(cased).tokenizer.encode(text).ids == lowered.tokenizer.encode(text).ids


def test_an_uncased_vocabulary_is_read_in_lower_case(cased: Path, caplog: pytest.LogCaptureFixture) -> None:
    pieces = (cased / "vocab.txt").read_text().split("\n")[:-1]
    lowered = [piece if piece.startswith("[") else f"~{i}" if piece != piece.lower() else piece
               for i, piece in enumerate(pieces)]  # fmt: skip
    (cased / "vocab.txt").write_text("".join(f"{piece}\n" for piece in lowered))
    assert "warnings" not in encoder(cased, unused="refuse").details  # by transformers' default
    edit(cased, "tokenizer_config.json", do_lower_case=False)
    with pytest.raises(
        ModelError, match=r"isn't used.* capitals of text, which no piece has.*model.lower=true: in lower"
    ):
        encoder(cased, unused="refuse")
    made = encoder(cased, lower=True)
    assert "[UNK]" not in made.tokenizer.encode("The DOG").tokens


@pytest.mark.parametrize("kind", ["gpt2", "t5"])
def test_lower_reads_any_tokenizer_in_lower_case(tmp_path: Path, kind: str) -> None:
    folder = tiny_models.make(kind, tmp_path / kind)
    own, lowered, as_it_is = (encoder(folder, lower=choice).tokenizer for choice in (None, True, False))
    assert lowered.encode("The DOG").ids == own.encode("the dog").ids
    assert as_it_is.encode("The DOG").ids == own.encode("The DOG").ids != lowered.encode("The DOG").ids
    (encoded,) = encoder(folder, lower=True).encode([Sentence.of(["The", "DOG"])])
    assert encoded.units == ("The", "DOG")
