"""BERT-flow's Tables 2 to 4: published figures as printed, ours below."""

from __future__ import annotations

from pathlib import Path

import pytest
from ctxexp_measures.calibration.li_2020 import STS_TASKS, published, table_li_2020, table_li_2020_qnli

from ctxexp import Results
from ctxexp.command import Experiment
from ctxexp.report import Table
from tests.composed import composed
from tests.sample_results import results_with

from .test_league import made


def shown(table: Table | None) -> dict[tuple[str, str], dict[str, str]]:
    """The rows of a table by name and aggregation."""
    assert table is not None
    rows = [dict(zip(table.columns, row, strict=True)) for row in table.shown]
    return {(row["row"], row["aggregation"]): row for row in rows}


def test_published_rows_are_as_printed() -> None:
    rows = published().set_index("row")
    assert rows.groupby("table").aggregation.apply(lambda of: of.value_counts().to_dict().get("all", 0)).tolist() == [
        3, 6, 0,
    ]  # fmt: skip
    own = rows[(rows.table == 3) & (rows.reported_by == "Li 2020")]
    assert own["STS-B"].tolist() == [77.08, 78.03, 79.10, 81.03, 77.80, 78.45, 79.89, 81.18]
    assert rows.QNLI.dropna().tolist() == [70.30, 72.52, 76.17, 70.41, 74.19, 77.09]
    assert rows.loc["BERT-base-flow (target)", ["STS-B", "STS16"]].tolist() == [70.72, 75.37]
    means = rows[list(STS_TASKS)].mean(axis=1)
    for model, gain in (("base", 5.88), ("large", 8.16)):  # over last2avg, as the paper prints it
        assert means[f"BERT-{model}-flow (target)"] - means[f"BERT-{model}-last2avg"] == pytest.approx(gain, abs=0.011)
    assert rows.note.notna().sum() == 2


def test_ours_stand_below_by_place_and_aggregation() -> None:
    runs = [("bert", made(names=STS_TASKS, pooling="mean")), ("flow", made("flow", names=STS_TASKS, mixed=50.0))]
    rows = shown(table_li_2020(runs))
    last = rows["bert (mini), last layer", "wmean"]
    assert (last["source"], last["STS-B"], last["fitted on"]) == ("ours", "36.00", "")
    flow = rows["flow (mini), flow_paper_last2", "all"]
    assert (flow["STS-B"], flow["fitted on"], flow["mean"]) == ("50.00", "target", "56.00")
    assert rows["BERT-base-flow (target)", "wmean"]["mean"] == "69.57"
    one = [("sts_b", made(names=("STS-B",), corpus="sts_b"))]  # a corpus of one
    assert shown(table_li_2020(one))["sts_b (mini), last2", "all"]["STS-B"] == "36.00"


def test_no_table_without_the_papers_mix() -> None:
    assert table_li_2020([("a", made(mixes={}))]) is table_li_2020([("a", Results())]) is None
    assert table_li_2020_qnli([("none", results_with({"word_norm/raw": [1.0, 2.0]}))]) is None


def test_question_answering_stands_below_the_published_areas(tmp_path: Path) -> None:
    lines = ["index\tquestion\tsentence\tlabel"]
    for i, word in enumerate(["boat", "river", "bank", "tree", "money", "house"]):
        lines += [f"{2 * i}\tWhere is the {word}?\tThe {word} is here.\tentailment"]
        lines += [f"{2 * i + 1}\tWho saw the {word}?\tRain fell all day.\tnot_entailment"]
    (tmp_path / "dev.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    overrides = ["experiment=li_2020_qnli", f"dataset.path={tmp_path}", "bootstrap=20"]
    results = Experiment(composed(*overrides, f"cache.folder={tmp_path}/cache")).run(tmp_path)
    rows = shown(table_li_2020_qnli([("bert", results)]))
    ours = {name: row["QNLI"] for (name, _), row in rows.items() if row["source"] == "ours"}
    assert len(ours) == 3  # the last layer and both mixes
    (area,) = [value for name, value in ours.items() if "flow_paper_last2" in name]
    assert area == f"{float(results.by_name['qnli.flow_paper_last2/auc'][0]):.2f}"
