"""BERT-flow's Tables 3 and 4: published figures as printed, ours below."""

from __future__ import annotations

from pathlib import Path

from ctxexp_measures.calibration.li_2020 import TABLE_3, TABLE_4, table_li_2020_qnli

from ctxexp.command import Experiment
from tests.composed import composed
from tests.made import results_with


def test_tables_3_and_4_are_as_printed() -> None:
    rows = TABLE_3.published()
    assert [row["aggregation"] for row in rows] == ["all"] * 6 + ["wmean"] * 8
    own = [row for row in rows if row["reported_by"] == "Li 2020"]
    assert [row["STS-B"] for row in own] == [77.08, 78.03, 79.10, 81.03, 77.80, 78.45, 79.89, 81.18]
    assert [row["QNLI"] for row in TABLE_4.published()] == [70.30, 72.52, 76.17, 70.41, 74.19, 77.09]


def test_question_answering_stands_below_the_published_areas(tmp_path: Path) -> None:
    lines = ["index\tquestion\tsentence\tlabel"]
    for i, word in enumerate(["boat", "river", "bank", "tree", "money", "house"]):
        lines += [f"{2 * i}\tWhere is the {word}?\tThe {word} is here.\tentailment"]
        lines += [f"{2 * i + 1}\tWho saw the {word}?\tRain fell all day.\tnot_entailment"]
    (tmp_path / "dev.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    overrides = [
        "experiment=li_2020_qnli",
        f"dataset.path={tmp_path}",
        "bootstrap=20",
        f"cache.folder={tmp_path}/cache",
    ]
    results = Experiment(composed(*overrides)).run(tmp_path)
    table = table_li_2020_qnli([("bert", results)])
    assert table is not None
    rows = [dict(zip(table.columns, row, strict=True)) for row in table.shown]
    assert [row["row"] for row in rows[:2]] == [
        "BERT-base-NLI-last2avg",
        "bert-base-nli, mean of the first and the last block (flow_paper_last2): not run",
    ]
    ours = {row["row"]: row["QNLI"] for row in rows if row["source"] == "ours" and row["QNLI"]}
    assert len(ours) == 3  # the last layer and both mixes
    (shown,) = [value for name, value in ours.items() if "flow_paper_last2" in name]
    assert shown == f"{float(results.by_name['qnli.flow_paper_last2/auc'][0]):.2f}"
    assert table_li_2020_qnli([("none", results_with({"word_norm/raw": [1.0, 2.0]}))]) is None
