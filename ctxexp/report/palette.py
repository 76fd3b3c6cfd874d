"""Colours of models: the same label gets the same colour in figures, pages and MLflow charts. No heavy import."""

from __future__ import annotations

import colorsys
import hashlib
import re
from collections.abc import Iterator, Sequence

FIXED = {"bert": "#1f77b4", "gpt2": "#d62728", "elmo": "#2ca02c"}
"""The paper's models."""

PALETTE = (  # after Okabe & Ito and Tol: told apart with the common colour-vision deficiencies
    "#e69f00",
    "#56b4e9",
    "#cc79a7",
    "#332288",
    "#44aa99",
    "#999933",
    "#882255",
    "#8c564b",
    "#9467bd",
    "#636363",
    "#7b6d00",
)

INK, FAINT, GRID = "#222222", "#666666", "#dddddd"
"""Colours of text, of secondary text, and of grid lines."""

SUMMARY, ORIGIN = "#7f7f7f", "#d62728"
"""Colours of a sweep's summary curve among those of its runs, and of the mark at the origin of a projection."""

_KNOWN_SHADES = {"untrained": 0.5, "published": -0.35, "mini": 0.3}
_SHADES = (0.4, -0.2, 0.55, 0.2)  # towards white (> 0) or black (< 0)


def colours(labels: Sequence[str]) -> dict[str, str]:
    """A distinct "#rrggbb" for each label, in the order given.

    bert, gpt2 and elmo are fixed; any other model or checkpoint is hashed to a palette, and past its end to generated
    hues. Labels that differ only in what follows the model's name ("bert", "bert (untrained)") share the hue and
    differ in lightness. The labels' order never matters; one label's colour moves only when another one claims it
    first.
    """
    families: dict[str, list[str]] = {}
    for label in sorted(set(labels)):
        families.setdefault(_family(label), []).append(label)
    used_colours: set[str] = set()
    hues: dict[str, str] = {}
    for name in sorted(families, key=lambda name: (name not in FIXED, name)):
        # the fixed colours stay free even where their models are absent: a label's colour mustn't depend on the others
        free = (c for c in _preferences(name) if c not in hues.values() and (name in FIXED or c not in FIXED.values()))
        hues[name] = next(free)
    colour_of: dict[str, str] = {}
    shaded: list[tuple[str, str]] = []
    for name, members in families.items():
        plain = min(members, key=lambda label: (label.strip().casefold() != name, label))
        if plain.strip().casefold() == name:
            colour_of[plain] = hues[name]
        shaded.extend((label, hues[name]) for label in members if label not in colour_of)
    used_colours.update(hues.values())  # a family's own colour stays free for its plain label
    for label, hue in shaded:
        colour_of[label] = next(colour for colour in _shades(label, hue) if colour not in used_colours)
        used_colours.add(colour_of[label])
    return {label: colour_of[label] for label in labels}


def _family(label: str) -> str:
    """The model with its checkpoint, without annotations: "bert" of "BERT (untrained)" and of "bert + flow"."""
    words = re.split(r"\s*[(\[:,+]", label.strip(), maxsplit=1)
    return words[0].casefold() or label.strip().casefold()


def _stable_hash(text: str) -> int:
    """The same number in every process, unlike hash()."""
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:8], "big")


def _preferences(name: str) -> Iterator[str]:
    """The colours a family would take, best first; never ends."""
    if name in FIXED:
        yield FIXED[name]
    start = _stable_hash(name)
    for step in range(len(PALETTE)):
        yield PALETTE[(start + step) % len(PALETTE)]
    yield from _generated(start)


def _shades(label: str, hue: str) -> Iterator[str]:
    """Lighter and darker versions of a family's colour, best first; never ends."""
    for word, amount in _KNOWN_SHADES.items():
        if word in label.casefold():
            yield _blend(hue, amount)
    start = _stable_hash(label)
    for step in range(len(_SHADES)):
        yield _blend(hue, _SHADES[(start + step) % len(_SHADES)])
    yield from _generated(start)


def _blend(colour: str, amount: float) -> str:
    """Towards white (0..1) or black (-1..0)."""
    channels = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
    end = 255 if amount > 0 else 0
    return "#" + "".join(f"{round(c + (end - c) * abs(amount)):02x}" for c in channels)


def _generated(start: int) -> Iterator[str]:
    """Hues by the golden angle, in turn at several lightnesses; then every colour there is."""
    hue = start % 3600 / 3600
    for step in range(360):
        hue = (hue + 0.6180339887498949) % 1
        rgb = colorsys.hls_to_rgb(hue, (0.42, 0.58, 0.32)[step % 3], (0.65, 0.85)[step % 2])
        yield "#" + "".join(f"{round(255 * c):02x}" for c in rgb)
    for code in range(2**24):
        yield f"#{(start + code * 2654435761) % 2**24:06x}"
