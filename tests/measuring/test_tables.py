"""Embedding tables: what encoders offer, and how a run measures them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from ctxexp import Block, Group, Sentence
from ctxexp.errors import EncodingError, ModelError
from ctxexp.measuring.pairs import check_table, measure_tables
from ctxexp.measuring.record import Record
from ctxexp.model import EmbeddingTable
from ctxexp.models import ElmoNetwork
from tests import tiny_models
from tests.sample_results import run_info
from tests.shipped import WordNorm
from tests.tiny_models import SHORT_TEXTS, encoder, with_head

SENTENCES = [Sentence.of(text.split()) for text in SHORT_TEXTS]


@pytest.mark.parametrize("tied", [True, False], ids=["tied", "untied"])
@pytest.mark.parametrize("kind", ["bert", "gpt2"])
def test_a_transformers_tables(tmp_path: Path, kind: str, tied: bool) -> None:
    import transformers as t

    folder = with_head(kind, tmp_path, tied=tied)
    tables = encoder(folder).tables(SENTENCES)
    assert [table.name for table in tables] == (["input"] if tied else ["input", "output"])
    whole = (t.BertForMaskedLM if kind == "bert" else t.GPT2LMHeadModel).from_pretrained(folder)
    tokenizer = t.AutoTokenizer.from_pretrained(folder)
    n = len(tokenizer)
    np.testing.assert_array_equal(tables[0].vectors, whole.get_input_embeddings().weight.detach().numpy()[:n])
    np.testing.assert_array_equal(tables[-1].vectors, whole.get_output_embeddings().weight.detach().numpy()[:n])
    assert np.array_equal(tables[0].vectors, tables[-1].vectors) == tied
    assert tables[0].tied == tied
    counted = Counter(i for s in SENTENCES for i in tokenizer(s.text, add_special_tokens=False)["input_ids"])
    for table in tables:
        assert list(table.tokens) == tokenizer.convert_ids_to_tokens(range(n))
        assert table.counts.tolist() == [counted[i] for i in range(n)]
        assert set(table.special) == set(tokenizer.all_special_ids)


def test_an_output_matrix_without_a_row_each_is_refused(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    folder = with_head("gpt2", tmp_path, tied=False)
    made = encoder(folder)
    weights = load_file(folder / "model.safetensors")
    weights["lm_head.weight"] = weights["lm_head.weight"][:5].clone()
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(ModelError, match=r"its output matrix lm_head.weight has 5 rows for \d+ pieces; expected a row"):
        made.tables(SENTENCES)


def test_elmos_token_layer_is_half_of_its_layer_0() -> None:
    options = tiny_models.elmo_options()
    network = ElmoNetwork(options, generator=torch.Generator().manual_seed(0))
    made = tiny_models.elmo(options, network.state_dict())
    (table,) = made.tables(SENTENCES)
    assert table.name == "token_layer"
    assert dict(zip(table.tokens, table.counts.tolist(), strict=True)) == Counter(w for s in SENTENCES for w in s.words)
    vectors = dict(zip(table.tokens, table.vectors, strict=True))
    for encoded in made.encode(SENTENCES):
        for word, row in zip(encoded.units, encoded.layers[0], strict=True):
            np.testing.assert_allclose(np.tile(vectors[word], 2), row, atol=1e-6)
    (empty,) = made.tables([])
    assert empty.vectors.shape == (0, 5)


# How a run measures tables: a table's metric is a fresh instance, its values are scalars; the files that it leaves are
# held by the plugin of frequencies.

TABLE = EmbeddingTable("input", ["a", "b"], np.eye(2, dtype=np.float32), np.array([3, 1]), note="made up")


class Tabled(WordNorm):
    """Also measures tables."""

    measures_embedding_tables = True

    def update(self, group: Group) -> None:
        assert group.key == group.table.name
        self.n, self.sum = len(group.table.tokens), float(group.x.sum())

    def update_block(self, block: Block) -> None:
        for group in block:
            self.update(group)

    def compute(self) -> dict[str, float]:
        return {"rows": self.n, "sum": self.sum}


def test_values_are_scalars_by_table() -> None:
    record = Record({"tabled": Tabled, "plain": WordNorm})
    measure_tables([TABLE, replace(TABLE, name="output")], record)
    results = record.results()
    assert results.by_name == {
        "tabled.input/rows": 2, "tabled.input/sum": 2, "tabled.output/rows": 2, "tabled.output/sum": 2,
    }  # fmt: skip
    info = run_info(tables={"input": {"rows": 2, "dim": 2, "note": "made up"}})
    assert results.info.tables["input"] == info.tables["input"]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (replace(TABLE, vectors=np.eye(3)), r"float64 vectors of shape \(3, 3\) for 2 tokens; expected floats, a row"),
        (replace(TABLE, counts=np.ones(3)), r"counts of shape \(3,\) for 2 tokens; expected one each, or None"),
        (replace(TABLE, vectors=np.full((2, 2), np.inf)), "table 'input' holds NaN or infinite values"),
    ],
)
def test_a_malformed_table_is_named(table: EmbeddingTable, message: str) -> None:
    with pytest.raises(EncodingError, match=message):
        check_table(table, encoder="model")
