"""The nine benchmarks: an implementation item by item beside each scorer, files, mistakes, the command."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ctxexp_measures.words.command import bench_words
from ctxexp_measures.words.load import load
from ctxexp_measures.words.space import WordSpace, word_list
from ctxexp_measures.words.suite import (
    LINKAGES,
    STARTS,
    Analogy,
    BenchmarkOptions,
    Categorisation,
    Relation,
    RelationalSimilarity,
    Similarity,
    answers,
    evaluate,
    score_analogy,
    score_categorisation,
    score_relational,
    score_similarity,
)
from scipy.stats import spearmanr

from ctxexp.errors import DataError
from ctxexp.maths import kmeans
from tests.published import published_data

ALL = [f"w{i}" for i in range(40)]
KNOWN = ALL[:30]  # ten words have no vector
VECTORS = (np.random.default_rng(0).normal(size=(30, 6)) + 0.3).astype(np.float32)
SPACE = WordSpace.of(KNOWN, VECTORS)

# An independent implementation, item by item.


def unit(v: np.ndarray) -> np.ndarray:
    length = np.linalg.norm(v)
    return v / length if length else v


BY_WORD = {w: unit(v) for w, v in zip(KNOWN, VECTORS.astype(np.float64), strict=True)}
MEAN = unit(VECTORS.mean(axis=0, dtype=np.float64))


def looked_up(words: Sequence[str], oov: str) -> list[np.ndarray]:
    """The words' vectors, or nothing where one has none."""
    known = all(w in BY_WORD for w in words)
    return [BY_WORD.get(w, MEAN) for w in words] if known or oov == "mean" else []


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float(unit(a) @ unit(b))


def naive_spearman(pairs: Sequence[tuple[str, str]], gold: Sequence[float], oov: str, of: Any) -> float:
    """Of the pairs with vectors, scored by `of`; equal pairs are ties."""
    found = [(round(of(*v), 12), g) for pair, g in zip(pairs, gold, strict=True) if (v := looked_up(pair, oov))]
    scores, ratings = zip(*found, strict=True) if found else ((), ())
    return spearmanr(scores, ratings).statistic if len(found) > 2 and len(set(scores)) > 1 else math.nan


def naive_analogy(b: Analogy, oov: str, section: str | None = None) -> float:
    right = []
    for question, part in zip(b.questions, b.sections, strict=True):
        if section in (None, part) and looked_up(question, oov):
            p, q, r = looked_up(question[:3], oov)
            others = (w for w in KNOWN if w not in question[:3])
            right.append(max(others, key=lambda w: cosine(BY_WORD[w], q - p + r)) == question[3])
    return float(np.mean(right)) if right else math.nan


def naive_relational(b: RelationalSimilarity, oov: str) -> float:
    rhos = []
    for relation in b.relations:
        offsets = [v[1] - v[0] for pair in relation.prototypes if (v := looked_up(pair, oov))]
        if offsets:
            mean = np.mean(offsets, axis=0)
            rhos.append(naive_spearman(relation.pairs, relation.gold, oov, lambda u, v: cosine(v - u, mean)))  # noqa: B023
    return float(np.nanmean(rhos))


def naive_purity(clusters: list[int], classes: list[str]) -> float:
    total = 0
    for cluster in set(clusters):
        members = [c for k, c in zip(clusters, classes, strict=True) if k == cluster]
        total += max(members.count(c) for c in members)
    return total / len(classes)


def drawn(seed: int, n: int, k: int) -> list[tuple[str, ...]]:
    rng = np.random.default_rng(seed)
    return [tuple(ALL[i] for i in rng.choice(40, k, replace=False)) for _ in range(n)]


def similarity() -> Similarity:
    pairs = [(a, b) for a, b in drawn(1, 60, 2)] + [("w1", "w1"), ("w2", "w2")]
    return Similarity("s", tuple(pairs), tuple(np.random.default_rng(1).integers(0, 9, 62).tolist()))


def questions() -> Analogy:
    """Half of the answers are planted, so that accuracy is not zero."""
    asked = []
    for i, (a, b, c, d) in enumerate(drawn(2, 80, 4)):
        u, v, w = looked_up((a, b, c), "mean")
        best = max((x for x in KNOWN if x not in (a, b, c)), key=lambda x: cosine(BY_WORD[x], v - u + w))
        asked.append((a, b, c, best if i % 2 else d))
    return Analogy("q", tuple(asked), tuple("ab"[i % 3 == 0] for i in range(80)))


def relations() -> RelationalSimilarity:
    made = []
    for seed in range(5):
        pairs = tuple((a, b) for a, b in drawn(seed, 25, 2))
        gold = tuple(np.random.default_rng(seed).normal(size=25).tolist())
        made.append(Relation(f"r{seed}", tuple((a, b) for a, b in drawn(seed + 50, 3, 2)), pairs, gold))
    made.append(Relation("nobody", (("w38", "w39"),), made[0].pairs, made[0].gold))  # no prototype has vectors
    made.append(Relation("few", made[0].prototypes, (("w1", "w2"), ("w3", "w4"), ("w5", "w39")), (1.0, 2.0, 3.0)))
    return RelationalSimilarity("r", tuple(made))


def classes() -> Categorisation:
    return Categorisation("c", tuple(ALL), tuple("xyzv"[i % 4] for i in range(40)))


OOV = ("skip", "mean")


@pytest.mark.parametrize("oov", OOV)
def test_similarity_against_loops(oov: Any) -> None:
    b = similarity()
    (score,) = score_similarity(SPACE, b, BenchmarkOptions(oov=oov))
    assert score.value == pytest.approx(naive_spearman(b.pairs, b.gold, oov, cosine), abs=1e-12)
    covered = sum(x in BY_WORD and y in BY_WORD for x, y in b.pairs)
    assert (score.covered, score.total) == (covered, 62)
    assert 0 < covered < 62
    assert score.n == (covered if oov == "skip" else 62)
    assert score.share == covered / 62


@pytest.mark.parametrize("oov", OOV)
def test_analogy_against_loops(oov: Any) -> None:
    b = questions()
    whole, *parts = score_analogy(SPACE, b, BenchmarkOptions(oov=oov))
    assert whole.value == naive_analogy(b, oov) > 0.2
    assert {p.part: p.value for p in parts} == {part: naive_analogy(b, oov, part) for part in "ba"}
    assert sum(p.total for p in parts) == whole.total == 80
    assert sum(p.covered for p in parts) == whole.covered == sum(all(w in BY_WORD for w in q) for q in b.questions)


def test_answers_do_not_depend_on_the_blocks() -> None:
    rng = np.random.default_rng(0)
    asked = rng.integers(-1, 30, (200, 3))
    whole = answers(SPACE, asked)
    for chunk in (1, 70, 700, 5000):
        assert (answers(SPACE, asked, chunk=chunk) == whole).all()
    assert answers(WordSpace.of([], VECTORS[:0]), asked).tolist() == [-1] * 200


@pytest.mark.parametrize("oov", OOV)
def test_relations_against_loops(oov: Any) -> None:
    b = relations()
    whole, *parts = score_relational(SPACE, b, BenchmarkOptions(oov=oov))
    assert whole.value == pytest.approx(naive_relational(b, oov), abs=1e-12)
    assert (whole.covered, whole.total) == (sum(p.covered for p in parts), 25 * 6 + 3)
    undefined = [p.part for p in parts if math.isnan(p.value)]
    assert {"nobody", "few"} <= set(undefined) if oov == "skip" else undefined == ["nobody"]


@pytest.mark.parametrize("oov", OOV)
@pytest.mark.parametrize("clustering", ["kmeans", "best"])
def test_purity_against_loops(oov: Any, clustering: Any) -> None:
    from sklearn.cluster import AgglomerativeClustering

    b = classes()
    (score,) = score_categorisation(SPACE, b, BenchmarkOptions(oov=oov, clustering=clustering, seed=3))
    x = np.array([v for w in ALL for v in looked_up([w], oov)])
    kept = [c for w, c in zip(ALL, b.classes, strict=True) if looked_up([w], oov)]
    found = [naive_purity(kmeans(x, 4, seed=3, starts=STARTS)[0].tolist(), kept)]
    for method, metric in LINKAGES if clustering == "best" else ():
        tree = AgglomerativeClustering(4, linkage=method, metric=metric)
        found.append(naive_purity(tree.fit_predict(x).tolist(), kept))
    assert score.value == pytest.approx(max(found), abs=1e-12)
    assert (score.covered, score.total, score.n) == (30, 40, 30 if oov == "skip" else 40)


# The space.


def test_cased_forms() -> None:
    words, x = ["Apple", "apple", "APPLE", "pear"], np.array([[2, 0], [0, 5], [0, 1], [1, 1]])
    frequent = WordSpace.of(words, x)
    assert frequent.words == ["apple", "pear"]
    assert frequent.vectors.tolist() == [[2, 0], [1, 1]]
    exact = WordSpace.of(words, x, lower=False)
    assert exact.words == words
    assert exact.rows(["apple", "Pear", "pear"]).tolist() == [1, -1, 3]
    assert frequent.rows(["ApPle", "PEAR"]).tolist() == [0, 1]


def test_a_shared_vocabulary_and_vectors_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "words").write_text("Pear\t3\nzero\nnan\n\n")
    words, x = ["apple", "pear", "zero", "nan"], np.array([[2, 0], [1, 1], [0, 0], [np.nan, 1]])
    shared = word_list(tmp_path / "words")
    assert shared == ["Pear", "zero", "nan"]
    assert WordSpace.of(words, x, shared=shared).words == ["pear"]
    assert WordSpace.of(words, x, shared=shared, lower=False).words == []
    assert WordSpace.of(words, x).words == ["apple", "pear"]
    (tmp_path / "empty").write_text("\n")
    for name, message in (("absent", "absent can.t be read"), ("empty", "has no word")):
        with pytest.raises(DataError, match=message):
            word_list(tmp_path / name)


# Files.

FILES = {
    "simlex999/SimLex-999.txt": "word1\tword2\tPOS\tSimLex999\tc\r\nold\tnew\tA\t1.58\t2\r\nsmart\twise\tA\t9.2\t1\r\n",
    "men/MEN_dataset_natural_form_full": "sun sunlight 50.000000\nautomobile car 50.000000\n",
    "wordsim353/combined.tab": "Word 1\tWord 2\tHuman (mean)\r\nlove\tsex\t6.77\r\nFBI\tcat\t7.35\r\n",
    "rw/rw.txt": "squishing\tsquirt\t5.88\t7\t7\nundated\tundatable\t5.83\t10\t9\n",
    "google-analogies/questions-words.txt": ": capital\nAthens Greece Oslo Norway\n: gram1\nbig bigger old older\n",
    "msr-analogies/msr.csv": ",type,word1,word2,word3,target\n0,JJ,good,better,rough,rougher\n1,NN,city,city's,a,b\n",
    "semeval2012-task2/subcategories-paradigms.txt": (
        "1, a, CLASS, Taxonomic, flower:tulip, emotion:rage, poem:sonnet\n"
        "4, g, CASE, Object:Component, run-on: sentence. a:b c:d\n5, z, TRAINING, x, a:b\n"
    ),
    "semeval2012-task2/GoldRatings/Testing/GoldRatings-1a.txt": '#\n# c\n 88.0 "flower:rose"\n-12.5 "rose:flower"\n',
    "semeval2012-task2/GoldRatings/Testing/GoldRatings-4g.txt": '50.0 "run-on:sentence"\n',
    "bless/bless.csv": ",category,word\n0,bird,crow\n1,bird,\n2,tool,axe\n3,tool,\n",
    "ap/ap.csv": ",category,word\n0,illness,acne\n1,illness,\n",
}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / "word" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    return tmp_path / "word"


def test_all_nine_are_read(data: Path) -> None:
    simlex, men, ws353, rw, google, msr, semeval, bless, ap = load(data)
    assert simlex == Similarity("simlex999", (("old", "new"), ("smart", "wise")), (1.58, 9.2))
    assert men == Similarity("men", (("sun", "sunlight"), ("automobile", "car")), (50.0, 50.0))
    assert ws353 == Similarity("ws353", (("love", "sex"), ("FBI", "cat")), (6.77, 7.35))
    assert rw == Similarity("rw", (("squishing", "squirt"), ("undated", "undatable")), (5.88, 5.83))
    assert google == Analogy(
        "google", (("Athens", "Greece", "Oslo", "Norway"), ("big", "bigger", "old", "older")), ("capital", "gram1")
    )
    assert msr == Analogy("msr", (("good", "better", "rough", "rougher"), ("city", "city's", "a", "b")), ("JJ", "NN"))
    assert semeval == RelationalSimilarity(
        "semeval2012",
        (
            Relation(
                "1a Taxonomic",
                (("flower", "tulip"), ("emotion", "rage"), ("poem", "sonnet")),
                (("flower", "rose"), ("rose", "flower")),
                (88.0, -12.5),
            ),
            Relation(
                "4g Object:Component",
                (("run-on", "sentence"), ("a", "b"), ("c", "d")),
                (("run-on", "sentence"),),
                (50.0,),
            ),
        ),
    )
    assert bless == Categorisation("bless", ("crow", "axe"), ("bird", "tool"))
    assert ap == Categorisation("ap", ("acne",), ("illness",))


@pytest.mark.parametrize(
    ("name", "file", "text", "message"),
    [
        ("ws353", "wordsim353/combined.tab", "Word 1\tWord 2\tm\n", r"combined\.tab has no item of the benchmark"),
        ("ws353", "wordsim353/combined.tab", "1\t2\tm\na\tb\tnan\n", r"line 2: expected a number in place of 'nan'"),
        ("semeval2012", "semeval2012-task2/subcategories-paradigms.txt", "1, a, x, y, a:b\n", r"no prototypes .* 4g"),
    ],
)  # fmt: skip
def test_malformed_files(data: Path, name: str, file: str, text: str, message: str) -> None:
    (data / file).write_text(text)
    with pytest.raises(DataError, match=message):
        load(data, [name])


@pytest.fixture
def published() -> Path:
    """The benchmarks as their publishers give them."""
    return published_data("data", "word")


def test_the_published_counts(published: Path) -> None:
    simlex, men, ws353, rw, google, msr, semeval, bless, ap = load(published)
    sizes = [len(b.pairs) for b in (simlex, men, ws353, rw)]  # type: ignore[union-attr]
    assert sizes == [999, 3000, 353, 2034]
    assert (len(google.questions), len(set(google.sections))) == (19544, 14)
    assert (len(msr.questions), len(set(msr.sections))) == (8000, 16)
    assert (len(semeval.relations), sum(len(r.pairs) for r in semeval.relations)) == (69, 2791)
    assert min(len(r.prototypes) for r in semeval.relations) == 3
    assert [(len(b.members), len(set(b.classes))) for b in (bless, ap)] == [(200, 17), (402, 21)]  # type: ignore[union-attr]


# The command.


def test_the_command_scores_what_the_file_holds(data: Path, tmp_path: Path) -> None:
    words = sorted({w.lower() for b in load(data) for w in b.words()} - {"wise"})
    x = np.random.default_rng(0).normal(size=(len(words), 4))
    file, shared = tmp_path / "v.txt", tmp_path / "list"
    file.write_text("".join(f"{w} {' '.join(map(str, row))}\n" for w, row in zip(words, x.tolist(), strict=True)))
    made = bench_words(vectors=file, data=data).tables["word_benchmarks"]
    rows = made.numbers[["benchmark", "part", "covered", "total"]].to_numpy().tolist()
    expected = evaluate(WordSpace.of(words, x), load(data))
    assert rows == [[s.benchmark, s.part, s.covered, s.total] for s in expected]
    assert ["simlex999", "nan", "1 of 2 (50.0%)"] in made.shown
    shared.write_text("old\nnew\n")
    few = bench_words(vectors=file, data=data, shared_vocabulary=shared, benchmarks=["men"]).tables["word_benchmarks"]
    assert [row[2] for row in few.shown] == ["0 of 2 (0.0%)"]
