"""What makes a finished job another one: everything that its numbers come from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ctxexp import Corpus, Pair, Sense
from ctxexp.command.config import Component
from ctxexp.command.identity import code_of, files_digest, job_key, key_of
from ctxexp.files.code_version import package_digest
from ctxexp.measuring.study import Study
from ctxexp.plugins.registry import Offer
from tests.composed import composed

CORPUS = Corpus.of("c", [["the", "bank"], ["a", "bank"]])
GOLD = replace(CORPUS, pairs=(Pair(0, 1, 0.5, "A"),), senses=(Sense(0, 1, "money"),))


@pytest.mark.parametrize(
    "changed",
    [
        replace(GOLD, pairs=(Pair(0, 1, 0.6, "A"),)),
        replace(GOLD, pairs=(Pair(0, 1, 0.5, "B"),)),
        replace(GOLD, pairs=()),
        replace(GOLD, senses=(Sense(0, 1, "shore"),)),
        replace(GOLD, senses=(Sense(1, 1, "money"),)),
        replace(GOLD, sentences=GOLD.sentences[::-1]),
    ],
)
def test_gold_and_senses_are_content_as_texts_are(changed: Corpus) -> None:
    assert changed.content != GOLD.content
    assert replace(GOLD, name="another name").content == GOLD.content
    assert replace(GOLD).fingerprint == CORPUS.fingerprint  # what an encoder reads is the same


def test_the_key_follows_the_numbers_and_nothing_else() -> None:
    def of(*words: str, given: tuple[str, str, str] = ("f", "e", "1")) -> str:
        return job_key(composed(*words), *given)

    key = of()
    assert of("tracking.folder=elsewhere") == of("resume=true") == key
    others = {of("seed=1"), of("words.lower=true"), of("model.pooling=first"), of("metric.self_similarity.sample=4")}
    others |= {of(given=given) for given in (("g", "e", "1"), ("f", "e", "2"), ("f", "other weights", "1"))}
    others |= {of("transform=center", "fit_on=train"), of("transform=center")}
    assert len(others | {key}) == 10


def measuring(**arguments: object) -> Any:
    """A config with a metric of these arguments."""
    whole = composed("dataset=text", "dataset.path=/")
    return replace(whole, metric={"mine": Component(Offer("metric", "mine", abs, "tests"), arguments)})


def test_a_metrics_files_count_by_what_they_hold(tmp_path: Path) -> None:
    words, folder = tmp_path / "words.txt", tmp_path / "data" / "ws353"
    folder.mkdir(parents=True)
    words.write_text("bank")
    (folder / "combined.tab").write_text("a b 1")
    config = measuring(data=str(folder.parent), lists=[str(words)], seed=3, oov="")
    seen = [files_digest(config)]
    words.write_text("bonk")
    seen.append(files_digest(config))
    (folder / "combined.tab").write_text("a b 1.5")
    seen.append(files_digest(config))
    (folder / "more.tab").symlink_to("nowhere")
    seen.append(files_digest(config))
    words.unlink()
    seen.append(files_digest(config))
    assert len(set(seen)) == len(seen)
    assert files_digest(config) == seen[-1]


def test_a_jobs_key_covers_all_that_its_numbers_need(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Model:
        name, n_layers, dim = "model@1", 2, 4

    (tmp_path / "words.txt").write_text("bank")
    config = measuring(words=str(tmp_path / "words.txt"))

    def key(corpus: Corpus, text: Corpus | None = None) -> str:
        study = Study(corpus=corpus, fit_on=text, encoder=Model(), metrics={})  # type: ignore[arg-type]  # its name counts
        return key_of(config, study)

    keys = [key(corpus, text) for corpus in (CORPUS, GOLD) for text in (None, CORPUS, GOLD)]
    (tmp_path / "words.txt").write_text("bonk")
    keys.append(key(CORPUS))
    monkeypatch.setattr("ctxexp.command.identity.CODE", "other")
    keys.append(key(CORPUS))
    assert len(set(keys)) == len(keys)
    assert key(replace(CORPUS, name="moved")) == keys[-1]


@pytest.mark.parametrize("file", ["mine.py", "mine/own.py"])
def test_an_edit_of_a_plugins_code_makes_other_results(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured, plain = composed("metric=degeneration"), composed("metric=anisotropy")  # before there is such a plugin
    (tmp_path / "mine-1.dist-info").mkdir()
    (tmp_path / "mine-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1\n")
    (tmp_path / "mine-1.dist-info" / "entry_points.txt").write_text("[ctxexp]\nown = mine\n")
    (tmp_path / file).parent.mkdir(exist_ok=True)
    for name in {"mine.py" if file == "mine.py" else "mine/__init__.py", file}:
        (tmp_path / name).write_text("half = 0.5")
    monkeypatch.syspath_prepend(tmp_path)
    before = code_of("mine")
    (tmp_path / file).write_text("half = 0.6")
    package_digest.cache_clear()
    assert len({before, code_of("mine"), code_of("a file"), ""}) == 3
    keys = [job_key(config, "", "", "") for config in (measured, plain)]
    monkeypatch.setattr("ctxexp.command.identity.code_of", lambda plugin: f"another {plugin}")
    assert job_key(measured, "", "", "") != keys[0]
    assert job_key(plain, "", "", "") == keys[1]  # a plugin that supplies nothing


def test_an_edit_of_any_file_of_ours_makes_other_results(tmp_path: Path) -> None:
    (tmp_path / "metrics").mkdir()
    file = tmp_path / "metrics" / "own.py"
    file.write_text("half = 0.5")
    before = package_digest(tmp_path)
    package_digest.cache_clear()
    assert package_digest(tmp_path) == before
    file.write_text("half = 0.6")
    package_digest.cache_clear()
    assert package_digest(tmp_path) != before
