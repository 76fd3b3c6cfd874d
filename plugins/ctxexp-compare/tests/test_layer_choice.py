"""The choice of a layer: its interval covers, its verdicts follow from it, and its scores are those of the measures."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from ctxexp_compare.layer_choice import winner
from ctxexp_compare.layer_choice.checkpoint import CHECKED, layer_vectors, linear_map, plain_view, save_layer
from ctxexp_compare.layer_choice.choice import MEAN, Candidate, ScoreTable, choose
from ctxexp_compare.layer_choice.command import answer, layer, report
from ctxexp_compare.layer_choice.retrieval import ndcg
from ctxexp_compare.layer_choice.score_file import score_file_table
from ctxexp_compare.layer_choice.sense_neighbours import SenseNeighbours, neighbour_hits
from ctxexp_compare.layer_choice.tasks import STS_TASKS, WithMeanLayer, load_model, measured_table
from scipy.stats import spearmanr

import ctxexp
from benchmarks.layer_choice import FAMILIES, WORLDS, family_shares, sample
from ctxexp import Block, Group
from ctxexp.command import Experiment, configured, registry
from ctxexp.errors import ConfigError, DataError, MetricError, ModelError, UnknownName
from tests.published import published_data
from tests.seeds import daily_seed


def table(scores: np.ndarray, **choices: object) -> ScoreTable:
    names = tuple(f"task {i}" for i in range(len(scores)))
    return ScoreTable("mine", names, tuple(map(Candidate, range(scores.shape[1]))), scores, **choices)  # type: ignore[arg-type]


def test_truncation_is_where_the_winner_changes() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        means, root = rng.normal(size=5), rng.normal(size=(5, 5))
        covariance = root @ root.T
        best = int(means.argmax())
        contrast = np.eye(5)[best] - np.eye(5)[(best + 1) % 5]
        lost = [(j, best) for j in range(5) if j != best]
        low, high = winner.truncation(means, covariance, contrast, lost)
        slope = covariance @ contrast / (contrast @ covariance @ contrast)
        value = contrast @ means
        assert low <= value <= high
        for at, still in ((low, False), (high, False), ((max(low, -9) + value) / 2, True)):
            if np.isfinite(at):
                outwards = at + (0.001 if at == high else -0.001 if at == low else 0)
                moved = means + slope * (outwards - value)  # what is independent of the contrast stays
                assert (int(moved.argmax()) == best) is still


def test_held_out_scores_are_those_of_the_other_tasks_choice() -> None:
    scores = np.random.default_rng(1).normal(50, 3, (9, 5))
    chosen = choose(table(scores), families="none")
    own, gains = [], []
    for i in range(9):
        others = np.delete(scores, i, axis=0).mean(axis=0)
        own.append(scores[i, others.argmax()])
        gains.append(own[-1] - scores[i, 0 if others[0] > others[4] else 4])
    assert chosen.held_out == pytest.approx(np.mean(own))
    assert chosen.gains["ends"].held_out == pytest.approx(np.mean(gains))
    assert set(chosen.gains) == {"last", "input", "ends"}


def test_families_are_held_out_whole() -> None:
    """The layer of a family that is best in it alone is not its own choice."""
    scores, rng = np.full((12, 6), 50.0), np.random.default_rng(2)
    scores[:4, 1], scores[4:, 3] = 90.0, 60.0
    scores += rng.normal(0, 0.1, scores.shape)
    families = tuple("a" * 4 + "b" * 4 + "c" * 4)
    chosen = choose(replace(table(scores), families=families))
    assert [chosen.chosen_without[f"task {i}"].layer for i in range(12)] == [3] * 4 + [1] * 8
    assert (chosen.families, chosen.families_by) == (families, "given")


def test_tasks_in_families_seldom_call_a_layer_better(monkeypatch: pytest.MonkeyPatch) -> None:
    """The small form of `python -m benchmarks.layer_choice --families`: 50 worlds with a difference and 50 without, and
    bounds that chance passes in fewer than 1 of 1,000 days where the page's shares are true."""
    monkeypatch.setattr(winner, "DRAWS", 200)
    rng = np.random.default_rng(daily_seed())
    sizes = list(FAMILIES.values())[int(rng.integers(4))]
    covered, null, _ = family_shares(sizes, float(rng.choice([0.3, 0.7])), 50, rng)["given"]
    assert covered >= 0.84, sizes
    assert null <= 0.18, sizes


def test_how_families_are_known_is_said() -> None:
    rng = np.random.default_rng(0)
    scores = rng.normal(50, 3, (8, 3))
    plain = table(scores)
    assert "tasks are taken as independent" in report(choose(plain)).text(200)  # three layers tell no family
    named = choose(replace(plain, tasks=(*STS_TASKS, "WiC")))
    assert "anew by 2 families of their names: STS, word senses" in report(named).text(200).replace("\n", " ")
    with pytest.raises(MetricError, match="all 8 tasks are of one family, x; expected two"):
        choose(replace(plain, families=("x",) * 8))


def test_answers_say_no_more_than_the_data_allow() -> None:
    rng = np.random.default_rng(0)
    noise, shape = rng.normal(0, 1, (12, 4)), np.array([0.0, 6.0, 1.0, 2.0])
    assert answer(choose(table(shape + noise))).startswith("use layer 1: +")
    assert answer(choose(table(np.sort(shape) + noise))).startswith("use the last layer, layer 3")
    assert answer(choose(table(noise[:, [3, 0, 1, 2]]))).startswith("no difference that this data can show: layer ")
    ends = answer(choose(table(np.array([6.0, 6.2, 1.0, 2.0]) + noise)))
    assert "rather than the last" in ends or ends.startswith("use layer 0: +")
    assert "task 0, task 1" not in report(choose(table(shape + noise))).text(200)  # twelve tasks aren't listed


def test_items_give_the_interval_where_tasks_are_few() -> None:
    covariance = np.stack([np.eye(3) * 4.0] * 2)
    chosen = choose(table(np.array([[50.0, 60.0, 55.0]] * 2), covariance=covariance))
    assert chosen.over == "items"
    missing = np.array([[1.0, 2.0, 3.0], [1.0, 2.0, np.nan]])
    for scores, known, over, said in (
        (np.ones((2, 3)), covariance, "tasks", "over=tasks: 2 tasks; expected 8 or more"),
        (np.ones((2, 3)), None, "auto", "mine: 2 tasks by their scores alone; expected 8 or more"),
        (missing, covariance, "auto", "task 1 has no score at layer 2; leave the task out"),
    ):
        with pytest.raises(MetricError, match=said):
            choose(table(scores, covariance=known), over=over)  # type: ignore[arg-type]


def test_sense_neighbours_against_loops() -> None:
    rng = np.random.default_rng(2)
    x, labels = rng.normal(size=(14, 3)).astype(np.float32), np.array(list("aaaaabbbbbcccd"))

    def naive(x: np.ndarray, labels: np.ndarray) -> np.ndarray:
        u = x.astype(float) / np.linalg.norm(x.astype(float), axis=1)[:, None]
        right = []
        for i in range(len(x)):
            others = [j for j in range(len(x)) if j != i]
            right.append(labels[i] == labels[max(others, key=lambda j: u[i] @ u[j])])
        return np.array(right, float)

    kept = labels != "d"  # a sense of one occurrence is no one's neighbour
    assert neighbour_hits(x, labels)[0].tolist() == naive(x[kept], labels[kept]).tolist()
    metric = SenseNeighbours()
    group = Group("bank", x, labels=tuple(labels))
    metric.update_block(Block.of(group))
    metric.update(Group("one sense", x[:3], labels=("a", "a", "a")))
    statistics = metric.compute()
    assert statistics["raw"] == pytest.approx(naive(x[kept], labels[kept]).mean())
    assert statistics["undefined"] == 1
    left = np.array([naive(np.delete(x[kept], i, 0), np.delete(labels[kept], i)).mean() for i in range(13)])
    expected = (left.mean() - left) * np.sqrt(12 / 13)
    assert metric._row_influence(Block.of(group))[0][kept] == pytest.approx(expected)
    with pytest.raises(MetricError, match=r"word 'bank' has 3 rows and 0 labels"):
        metric.update(Group("bank", x[:3]))


def test_the_mean_layer_is_the_mean_of_the_layers() -> None:
    base = ctxexp.from_arrays([np.arange(12.0).reshape(3, 2, 2)], [["a", "bank"]])
    (one,) = WithMeanLayer(base).encode(base.corpus.sentences)
    assert one.layers.shape == (4, 2, 2)
    assert one.layers[3].tolist() == one.layers[:3].mean(axis=0).tolist()
    assert WithMeanLayer(base).layer_numbers == (0, 1, 2, 3)


WORDS = [*"abcdefghijklmnop"]


def drawn_pairs() -> list[tuple[list[str], str, int]]:
    """The words of a text, another text, and how many words they share."""
    rng, found = np.random.default_rng(0), []
    for _ in range(60):
        first, shared = list(rng.choice(WORDS, 7)), int(rng.integers(0, 6))
        found.append((first, " ".join(first[:shared] + list(rng.choice(WORDS, 7 - shared))), shared))
    return found


def stsb(folder: Path) -> Path:
    """A tiny STS benchmark: the more words two sentences share, the higher the score."""
    lines = [
        f"main\tmade\t2026\t{i:04}\t{shared}.0\t{' '.join(first)} {i}\t{other}\n"
        for i, (first, other, shared) in enumerate(drawn_pairs())
    ]
    (folder / "STSbenchmark").mkdir(parents=True)
    (folder / "STSbenchmark" / "sts-test.csv").write_text("".join(lines))
    return folder


def test_measured_scores_are_those_of_runs(tmp_path: Path) -> None:
    folder = stsb(tmp_path)
    model = load_model("bert", [], twin=True)
    found = measured_table(model, ["STS-B"], data=folder, bootstrap=100)
    options = ["dataset=sts", "dataset.tasks=[STS-B]", f"dataset.path={folder}", "sentence.pooling=mean"]
    options += ["sentence.mixes=[scalar_mix]", "bootstrap=0"]
    at = {candidate: i for i, candidate in enumerate(found.candidates)}
    for twin, words in ((False, []), (True, ["weights=untrained"])):
        run = ctxexp.measure("bert", metrics="sts", options=[*options, *words], progress=False)
        curve = run.by_name["sts/all"]
        assert found.scores[0][[at[Candidate(i, twin=twin)] for i in range(5)]] == pytest.approx(curve, abs=1e-4)
        mix = run.by_name["sts.scalar_mix/all"][0]
        assert found.scores[0][at[Candidate(MEAN, twin=twin)]] == pytest.approx(mix, abs=0.5)
    spread = np.sqrt(np.diagonal(found.covariance[0]))  # type: ignore[index]
    assert (spread > 1).all()
    chosen = choose(found)
    assert set(chosen.gains) == {"last", "input", "ends", "mean", "twin"}
    assert chosen.over == "items"
    with pytest.raises(ConfigError, match="bootstrap=5: expected 100 or more"):
        measured_table(model, ["STS-B"], data=folder, bootstrap=5)
    with pytest.raises(ConfigError, match="pooling=pooler gives vectors in the last layer only"):
        measured_table(model, ["STS-B"], data=folder, pooling="pooler")


def scores_csv(path: Path) -> Path:
    rng = np.random.default_rng(0)
    rows = ["model,task,layer,score"]
    for model, top in (("mine", 2), ("drawn", 0)):
        for task in range(10):
            rows += [f"{model},t{task},{i},{0.5 + 0.1 * (i == top) + rng.normal(0, 0.01):.4f}" for i in range(4)]
    path.write_text("\n".join(rows) + "\n")
    return path


def test_the_verb_writes_what_it_says(tmp_path: Path) -> None:
    made = layer("mine", scores=scores_csv(tmp_path / "scores.csv"), twin="drawn", out=tmp_path / "out")
    made.save(tmp_path / "out")
    saved = json.loads((tmp_path / "out" / "layer.json").read_text())
    assert made.sentences == [saved["answer"]]
    with pytest.raises(ConfigError, match="is there already, and is kept"):
        layer("mine", scores=tmp_path / "scores.csv", out=tmp_path / "out")
    assert saved["answer"].startswith("use layer 2: +")
    assert saved["best"] == {"layer": 2, "transform": "none", "twin": False}
    assert saved["gains"]["twin"]["verdict"] in ("better", "no difference that this data can show")
    assert len((tmp_path / "out" / "layer.csv").read_text().splitlines()) == 1 + 10 * 8


def test_a_score_stands_once_and_no_word_is_missing(tmp_path: Path) -> None:
    rows = [{"model": "m", "task": task, "layer": i, "score": 50 + i} for task in ("A", "NA") for i in (0, 1)]
    for frame in (pd.DataFrame(rows), rows):
        assert score_file_table(frame, "m").tasks == ("A", "NA")
    both = pd.concat([pd.DataFrame(rows).assign(split=split) for split in ("dev", "test")])
    both.to_csv(tmp_path / "scores.csv", index=False)
    with pytest.raises(DataError, match=r"line 6: model m, task A, layer 0 stands twice; .* split \('dev', 'test'\)"):
        score_file_table(tmp_path / "scores.csv", "m")
    both[both["split"] == "test"].to_parquet(tmp_path / "scores.parquet")
    assert score_file_table(tmp_path / "scores.parquet", "m").scores.tolist() == [[50.0, 51.0]] * 2


@pytest.mark.published
def test_released_scores_give_the_published_gain() -> None:
    file = published_data("data", "released", "skean_2025", "mteb_by_layer.csv.xz")
    chosen = choose(score_file_table(file, "pythia-410m", "pythia-410m@step1"))
    assert chosen.best == Candidate(17)
    assert round(chosen.gains["last"].held_out, 2) == 5.06  # as the claims on that paper have it
    assert sorted(Counter(chosen.families).values()) == [3, 4, 6, 9, 10]  # by MTEB's types
    assert chosen.gains["last"].verdict == "no difference that this data can show"
    one_by_one = choose(chosen.table, families="none")
    assert one_by_one.gains["last"].verdict == "better"
    small = choose(score_file_table(file, "pythia-70m"))
    assert answer(small).startswith("no difference that this data can show: layer 0")


def test_the_lowest_layer_that_loses_little() -> None:
    """Against the bound of one layer alone, and in planted worlds: the promise holds in 95%, whatever was chosen."""
    covariance = np.stack([np.diag([4.0, 4.0, 4.0, 0.001])] * 2)
    own = table(np.array([[50.0, 58.0, 60.0, 60.5]] * 2), covariance=covariance)
    cut = choose(own, loss=6.0).cut
    assert cut.layer == Candidate(1)
    assert cut.value == 2.5
    assert (cut.high - cut.value) / np.sqrt(2) == pytest.approx(2.39, abs=0.1)  # of three comparisons at once
    assert answer(choose(own, loss=6.0)).startswith("use layer 1, 1 of 3 blocks: it loses 2.5 [")
    assert answer(choose(own, loss=0.0)) == "no layer below layer 3, the last, loses as little for certain"
    covered, rng = [], np.random.default_rng(daily_seed())
    truth = WORLDS["rising to the last"]
    for seed in range(60):
        cut = choose(sample(truth, 16, False, rng), loss=2.0, seed=seed).cut
        covered.append(cut.low <= truth[-1] - truth[int(cut.layer.layer)] <= cut.high)
    assert np.mean(covered) >= 0.85


def write_pairs(folder: Path) -> tuple[Path, Path, Path]:
    """Pairs whose score is the share of words that they have in common, queries with an answer, and documents."""
    pairs, queries, texts = ["text_a,text_b,score"], ["query,document"], ["document"]
    for i, (first, other, shared) in enumerate(drawn_pairs()):
        pairs.append(f"{' '.join(first)} {i},{other},{shared}")
        queries += [f"{' '.join(first[:4])} {i},{' '.join(first)} {i}"] * (i < 20)
        texts.append(other)
    files = (folder / "pairs.csv", folder / "queries.csv", folder / "docs.csv")
    for file, lines in zip(files, (pairs, queries, texts), strict=True):
        file.write_text("\n".join(lines) + "\n")
    return files


def test_pairs_and_queries_of_your_own_are_tasks(tmp_path: Path) -> None:
    pairs, queries, documents = write_pairs(tmp_path)
    model = load_model("bert", [], twin=False)
    tasks = ["STS-B", str(pairs), str(queries)]
    found = measured_table(model, tasks, data=stsb(tmp_path), documents=documents, bootstrap=100)
    assert found.tasks == tuple(tasks)
    view = model.encoder.sentence_encoder()
    rows = [line.split(",") for line in pairs.read_text().splitlines()[1:]]
    read = Experiment(configured("bert", [text for row in rows for text in row[:2]])).corpus.sentences
    x = np.stack([one.layers[2, 0] for one in view.encode(read)]).astype(float)
    u = x / np.linalg.norm(x, axis=1, keepdims=True)
    rho = spearmanr((u[::2] * u[1::2]).sum(axis=1), [float(row[2]) for row in rows]).statistic
    assert found.scores[1][2] == pytest.approx(100 * rho, abs=1e-3)
    assert (found.scores[2] > 20).all()
    assert (found.covariance[2].diagonal() > 0).all()  # type: ignore[index]
    for lines, said in (
        ("a,b\n1,2\n", r"no column 'text_a' or 'text1' or .*; it has 'a', 'b'"),
        ("text_a,text_b,score\nx,y,high\n", "line 2: score 'high' is not a number"),
        ("text_a,text_b,score\nx,,1\n", "line 2: a text is missing"),
        ("text_a,text_b,score\n", "no rows; expected pairs, or queries"),
    ):
        pairs.write_text(lines)
        with pytest.raises(DataError, match=said):
            measured_table(model, [str(pairs)])
    with pytest.raises(UnknownName, match=r"no task, and no file of pairs, 'mine.csv'"):
        layer("bert", tasks="mine.csv")


def test_ndcg_against_loops() -> None:
    """Two queries, one with two answers; of equally near documents each has the mean rank."""
    rng = np.random.default_rng(3)
    documents, queries = rng.normal(size=(14, 4)), rng.normal(size=(2, 4))
    documents[5] = documents[4]
    answers = [(0, 4), (0, 9), (1, 2)]
    ends = np.array([(q, 2 + d) for q, d in answers] + [(2 + d, 2 + d) for d in range(14)])
    x = np.stack([np.stack([queries[q], documents[d]]) for q, d in answers] + [np.stack([d, d]) for d in documents])
    expected = []
    for q in range(2):
        cosine = [documents[d] @ queries[q] / np.linalg.norm(documents[d]) for d in range(14)]
        gain = []
        for d in (d for own, d in answers if own == q):
            others = [cosine[e] for e in range(14) if e != d]
            rank = 1 + sum(c > cosine[d] + 1e-12 for c in others) + sum(abs(c - cosine[d]) < 1e-12 for c in others) / 2
            gain.append(1 / np.log2(rank + 1) if rank <= 10 else 0.0)
        expected.append(100 * sum(gain) / sum(1 / np.log2(r + 1) for r in range(1, len(gain) + 1)))
    assert ndcg(x, ends, np.arange(17) < 3).tolist() == pytest.approx(expected)


TEXTS = ["A bank by the river.", "The bank lent us money.", "Cats sleep.", "It rains in April, they say."]


@pytest.mark.parametrize("name", ["bert", "gpt2"])
def test_a_layer_is_a_plain_checkpoint(name: str, tmp_path: Path) -> None:
    """By the libraries alone: sentence-transformers gives the layer's vectors, transformers its hidden states, and the
    blocks above are gone; a network with a final norm keeps one of them."""
    sentence_transformers = pytest.importorskip("sentence_transformers", reason="needs sentence-transformers")
    from transformers import AutoModel, AutoTokenizer

    encoder = load_model(name, [], twin=False).encoder
    folder = registry().find("model", name).factory.model_files[0].find()
    model, tokenizer = AutoModel.from_pretrained(folder, dtype="float32").eval(), AutoTokenizer.from_pretrained(folder)
    for number in (0, 2, 4):
        out = tmp_path / str(number)
        save_layer(plain_view(encoder, "mean"), number, out, pooling="mean")
        cut = AutoModel.from_pretrained(out).eval()
        assert cut.config.num_hidden_layers == number + (name == "gpt2" and number < 4)
        loaded = sentence_transformers.SentenceTransformer(str(out), device="cpu")
        for text, row in zip(TEXTS, loaded.encode(TEXTS), strict=True):
            pieces = tokenizer(text, return_tensors="pt")
            hidden = model(**pieces, output_hidden_states=True).hidden_states[number]
            assert np.abs(row - hidden[0].mean(0).detach().numpy()).max() <= 1e-6 * np.abs(row).max()
            again = cut(**AutoTokenizer.from_pretrained(out)(text, return_tensors="pt"), output_hidden_states=True)
            states = again.last_hidden_state if name == "bert" else again.hidden_states[number]
            assert states.tolist() == hidden.tolist()


def test_a_linear_transform_is_a_module_and_another_is_refused(tmp_path: Path) -> None:
    sentence_transformers = pytest.importorskip("sentence_transformers", reason="needs sentence-transformers")
    encoder = load_model("bert", [], twin=False).encoder
    view = plain_view(encoder, "mean")
    x = layer_vectors(view, [*TEXTS, *CHECKED], 2, "mean")
    for transform in ("center", "{whitening: {k: 3, shrinkage: 0.1}}"):
        chosen = {"transform": "whitening", "transform.k": 3, "transform.shrinkage": 0.1}
        words = {"transform": "center"} if transform == "center" else chosen
        calibration = Experiment(configured(encoder, None, words)).calibration
        fitted = calibration.fit(x, "layer 2")
        save_layer(view, 2, tmp_path / words["transform"], pooling="mean", transform=(calibration, fitted))
        loaded = sentence_transformers.SentenceTransformer(str(tmp_path / words["transform"]), device="cpu")
        expected = fitted.apply(layer_vectors(view, TEXTS, 2, "mean"))
        assert loaded.encode(TEXTS) == pytest.approx(expected, abs=3e-6 * float(np.abs(expected).max()))
    calibration = Experiment(configured(encoder, None, transform="unit_norm")).calibration
    with pytest.raises(ModelError, match="transform unit_norm isn't linear"):
        linear_map(calibration, calibration.fit(x, "layer 2"), x.shape[1])


def test_what_no_checkpoint_can_hold_is_said_before_anything_is_measured(tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers", reason="needs sentence-transformers")
    for words, said in (
        ({"model": "elmo"}, "a checkpoint can be cut of models of transformers alone"),
        ({"model": "bert", "pooling": "mean_text"}, "pooling=mean_text: sentence-transformers has no such one"),
    ):
        with pytest.raises(ModelError, match=said):
            layer(**words, tasks="STS-B", data=tmp_path / "none", twin="none", out=tmp_path / "out")
    view = plain_view(load_model("gpt2 model.prefix=bos", [], twin=False).encoder, "mean")
    with pytest.raises(ModelError, match="no plain checkpoint: layer 2 gives vectors that differ by"):
        save_layer(view, 2, tmp_path / "out", pooling="mean")


def test_the_verb_writes_the_layer(tmp_path: Path) -> None:
    sentence_transformers = pytest.importorskip("sentence_transformers", reason="needs sentence-transformers")
    out = tmp_path / "out"
    words = {"tasks": "STS-B", "data": stsb(tmp_path), "twin": "none", "bootstrap": 100}
    made = layer("bert dtype=float32", loss=50, out=out, **words)  # type: ignore[arg-type]
    number = json.loads((out / "layer.json").read_text())["cut"]["layer"]["layer"]
    assert made.sentences[0].startswith(f"use layer {number}, {number} of 4 blocks: it loses ")
    view = load_model("bert", [], twin=False).encoder.sentence_encoder()
    loaded = sentence_transformers.SentenceTransformer(str(out), device="cpu")
    expected = layer_vectors(view, TEXTS, number, "mean")
    assert loaded.encode(TEXTS) == pytest.approx(expected, abs=1e-6 * float(np.abs(expected).max()))
    refused = layer("bert", transforms="unit_norm", out=tmp_path / "other", **words)  # type: ignore[arg-type]
    best = json.loads((tmp_path / "other" / "layer.json").read_text())["best"]
    assert refused.status == (best["transform"] == "unit_norm")
