"""What the docs say of the numbers is made of the numbers that lie beside them."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from ctxexp_senses.by_class import words as by_class
from ctxexp_senses.components import words as components
from ctxexp_senses.usages import words as usages
from PIL import Image

from ctxexp.files.marked import marked

ROOT = Path(__file__).resolve().parents[3]


def test_the_docs_say_what_the_kept_numbers_say(tmp_path: Path) -> None:
    """And writing them again changes nothing."""
    (tmp_path / "docs" / "measures").mkdir(parents=True)
    for module in (by_class, components, usages):
        numbers = pd.read_csv(ROOT / "docs" / f"{module.NAME}.csv")
        page = (ROOT / module.PAGE).read_text(encoding="utf-8")
        said = module.paragraph(numbers)
        assert said.count("\n") + 1 >= 4
        assert marked(ROOT / module.PAGE, module.MARK) == said
        (tmp_path / module.PAGE).write_text(page.replace(said, "old"), encoding="utf-8")
        if module is usages:
            usages.write(numbers, tmp_path)
        else:
            numbers.to_csv(tmp_path / f"table_{module.NAME}.csv", index=False)
            for name in (*by_class.DRAWN, components.NAME):
                Image.new("RGB", (2, 2)).save(tmp_path / f"{name}.png")
            module.write(tmp_path, tmp_path)
            assert (tmp_path / "docs" / f"{getattr(module, 'DRAWN', [module.NAME])[0]}.png").exists()
        assert (tmp_path / module.PAGE).read_text(encoding="utf-8") == page
        assert pd.read_csv(tmp_path / "docs" / f"{module.NAME}.csv").equals(numbers)


def test_what_is_said_is_what_the_numbers_are() -> None:
    rows = []
    for words in ("all", "ambiguous"):
        for layer, context in enumerate((0.01, 0.4, 0.3)):
            row = {"model": "m", "corpus": "c", "words": words, "layer": layer, "position": 0.1 * layer, "rest": 0.2}
            row |= {"context": context, "context_low": context - 0.01, "context_high": context + 0.01}
            rows.append(row | {"sense": context / 10, "sense_low": 0.0, "sense_high": 0.05, "sentence": 0.1})
    assert components.paragraph(pd.DataFrame(rows)) == (
        "- `m` on c: context is 1.0% [0.0, 2.0] of the variance in layer 0, at most 40.0% [39.0, 41.0] (layer 1) and "
        "30.0% [29.0, 31.0] in the last layer (2), of which sentence 10%, rest 20%; position takes up to 20% (layer 2)"
        "; of ambiguous words the sense is 4.0% [0.0, 5.0] at most (layer 1)."
    )
    told = [
        {"dtype": "bfloat16", "model": "m", "corpus": "wic", "task": task, "statistic": name, "layer": layer,
         "value": v, "low": v - 0.01, "high": v + 0.01, "measure": "wic"}
        for task in ("dev", "test") for name in ("accuracy", "form", "position")
        for layer, v in enumerate((0.5, 0.6 if task == "dev" else 0.58, 0.55))
    ]  # fmt: skip
    assert usages.paragraph(pd.DataFrame(told)).startswith(
        "- `m`, bfloat16, Word in Context: 58.0% [57.0, 59.0] of the test pairs in layer 1, the best of the dev pairs "
        "(60.0% [59.0, 61.0]), 55.0% [54.0, 56.0] in the last layer (2) and 50.0% [49.0, 51.0] in layer 0; spelling "
        "alone has 50.0%, place alone 50.0%. Published"
    )


def test_what_is_said_of_classes_is_their_last_layer() -> None:
    rows = []
    for measure, kinds in (("sense_separation_by_class", {"pos": "NOUN", "pieces": "1"}),
                           ("variance_components_by_class", {"pos": "NOUN", "frequency": "10-29", "pieces": "1"}),
                           ("self_similarity_by_class", {"pieces": "1"})):  # fmt: skip
        for kind, name in kinds.items():
            for layer, value in enumerate((0.9, 0.25)):
                row = {"model": "m", "corpus": "c", "measure": measure, "kind": kind, "class": name, "layer": layer}
                rows.append({**row, "value": value, "low": value - 0.1, "high": value + 0.1})
        rows.append({**rows[-1], "class": "few", "value": None, "low": None, "high": None})
    assert by_class.paragraph(by_class.last_layers(pd.DataFrame(rows))).splitlines() == [
        "| | class | m, layer 1 |",
        "|---|---|---|",
        "| sense separation | NOUN | 0.250 [0.150, 0.350] |",
        "| sense separation | 1 tokens | 0.250 [0.150, 0.350] |",
        "| context | NOUN | 25% [15, 35] |",
        "| context | 10-29 occurrences | 25% [15, 35] |",
        "| context | 1 tokens | 25% [15, 35] |",
        "| self-similarity | 1 tokens | 0.250 [0.150, 0.350] |",
    ]


def test_words_of_several_tokens_vary_less_with_their_context() -> None:
    """As the page says of every model that splits words."""
    numbers = pd.read_csv(ROOT / "docs" / f"{by_class.NAME}.csv")
    shares = numbers[(numbers.measure == "variance_components_by_class") & (numbers.kind == "pieces")]
    split = shares.pivot_table(index="model", columns="class", values=["low", "high"]).dropna()
    assert len(split) == 3
    assert (split["high"]["2"] < split["low"]["1"]).all()
    assert (split["high"]["3+"] < split["low"]["1"]).all()
