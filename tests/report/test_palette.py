from __future__ import annotations

import re
import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st

from ctxexp.report.palette import FIXED, PALETTE, colours


def rgb(colour: str) -> tuple[int, ...]:
    return tuple(int(colour[i : i + 2], 16) for i in (1, 3, 5))


def distance(a: str, b: str) -> float:
    return sum((p - q) ** 2 for p, q in zip(rgb(a), rgb(b), strict=True)) ** 0.5


def test_the_papers_models_keep_their_colours_whoever_else_is_there() -> None:
    assert set(FIXED) == {"bert", "gpt2", "elmo"}
    assert colours(list(FIXED)) == FIXED
    crowd = colours([f"model-{i}" for i in range(60)] + ["elmo", "bert (untrained)", "gpt2"])
    assert crowd["elmo"] == FIXED["elmo"]
    assert crowd["gpt2"] == FIXED["gpt2"]


words = st.sampled_from(["bert", "BERT", "gpt2", "llama", "qwen", "t5"])
notes = st.sampled_from(["", " (untrained)", " published", " seed 1", " seed 2", " x", ": last"])
label = st.one_of(st.builds(str.__add__, words, notes), st.text(max_size=12))


@given(st.lists(label, max_size=80, unique=True), st.randoms(use_true_random=False))
def test_colours_are_valid_distinct_and_independent_of_order(labels: list[str], random: object) -> None:
    chosen = colours(labels)
    assert list(chosen) == labels
    assert len(set(chosen.values())) == len(labels)
    assert all(re.fullmatch(r"#[0-9a-f]{6}", colour) for colour in chosen.values())
    shuffled = sorted(labels, key=lambda _: random.random())  # type: ignore[attr-defined]
    assert colours(shuffled) == chosen


def test_more_labels_than_the_palette_has_are_still_distinct() -> None:
    labels = [f"family{i}" for i in range(1500)]
    assert len(set(colours(labels).values())) == 1500


def test_a_palette_colour_is_told_from_every_other() -> None:
    all_colours = [*FIXED.values(), *PALETTE]
    assert len(PALETTE) >= 10
    assert min(distance(a, b) for i, a in enumerate(all_colours) for b in all_colours[:i]) > 45


def test_versions_of_one_model_share_the_hue_and_differ_in_lightness() -> None:
    chosen = colours(["bert", "bert (untrained)", "bert published"])
    plain, untrained, published = (rgb(c) for c in chosen.values())
    assert all(light > base for light, base in zip(untrained, plain, strict=True))
    assert all(dark < base for dark, base in zip(published, plain, strict=True))
    assert min(distance(chosen["bert"], c) for c in list(chosen.values())[1:]) > 45
    assert colours(["bert (untrained)"])["bert (untrained)"] == chosen["bert (untrained)"]  # also without "bert"


def test_colours_are_the_same_in_every_process_and_need_no_heavy_import() -> None:
    code = (
        "import sys; from ctxexp.report.palette import colours; print(colours(['llama', 'qwen']));"
        "assert not {'matplotlib', 'plotly', 'torch', 'mlflow'} & set(sys.modules)"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert outputs == {f"{colours(['llama', 'qwen'])}\n"}
