"""Rows on their two main directions, coloured by frequency: the points, and a page that names the words."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ctxexp.report import write_file

POINTS = 5000  # drawn at most
ORIGIN = "#d62728"


@dataclass(frozen=True)
class Projection:
    """At most `POINTS` rows on the first two right singular vectors of all rows, uncentred."""

    words: list[str]
    rank: list[int]
    x: list[float]
    y: list[float]
    energy: list[float]  # share of the squared norms in the first direction, and in the first two
    n: int  # rows that were projected


def project(x: np.ndarray, words: Sequence[str], rank: np.ndarray, *, seed: int = 0) -> Projection | None:
    """The rows of `x` (n, d) on the two directions that hold most of their energy (Gao et al. 2019, figure 1).

    `rank` (n,) is the frequency rank, 0 for the most frequent word; rows with a negative one are left out.

    By the singular value decomposition of the uncentred rows, as there: a first direction that is the common mean
    shows as such. Signs are fixed so that the mean's coordinates are not negative. Of more than `POINTS` rows a random
    sample is kept. None with fewer than two rows or columns, or without energy.
    """
    rows = np.flatnonzero((rank >= 0) & np.isfinite(x.sum(axis=1, dtype=np.float64)))
    if len(rows) < 2 or x.shape[1] < 2:
        return None
    gram = np.zeros((x.shape[1], x.shape[1]))
    for i in range(0, len(rows), 4096):
        part = x[rows[i : i + 4096]].astype(np.float64)
        gram += part.T @ part
    values, vectors = np.linalg.eigh(gram)
    total = float(np.trace(gram))
    if not total > 0:
        return None
    sample = np.sort(np.random.default_rng(seed).permutation(len(rows))[:POINTS])
    mean = x[rows].mean(axis=0, dtype=np.float64)
    axes = vectors[:, ::-1][:, :2]
    axes = axes * np.where(mean @ axes < 0, -1, 1)
    xy = x[rows[sample]].astype(np.float64) @ axes
    sample_rows = rows[sample]
    return Projection(
        [words[i] for i in sample_rows.tolist()],
        rank[sample_rows].tolist(),
        [float(f"{v:.5g}") for v in xy[:, 0]],  # for drawing only
        [float(f"{v:.5g}") for v in xy[:, 1]],
        [float(values[-1] / total), float(values[-2:].sum() / total)],
        len(rows),
    )


def draw(panels: Sequence[tuple[str, Projection]], path: Path, title: str) -> Path:
    """Write one self-contained page with a panel for each (name, projection); words on hover."""
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots

    names = [f"{n}: {p.energy[1]:.0%} of the energy in 2 directions, {p.energy[0]:.0%} in 1" for n, p in panels]
    figure = make_subplots(rows=len(panels), cols=1, subplot_titles=names, vertical_spacing=0.3 / (len(panels) + 1))
    top = math.log10(max(max(p.rank) for _, p in panels) + 1)
    for row, (name, p) in enumerate(panels, start=1):
        hover = [f"{html.escape(w, quote=False)}<br>rank {r + 1:,}" for w, r in zip(p.words, p.rank, strict=True)]
        marker = {
            "size": 5, "opacity": 0.8, "color": [round(math.log10(r + 1), 3) for r in p.rank], "colorscale": "Viridis",
            "reversescale": True, "cmin": 0, "cmax": top, "showscale": row == 1,
            "colorbar": {"title": "log10 rank", "len": 0.9 / len(panels), "y": 1, "yanchor": "top"},
        }  # fmt: skip
        trace = go.Scatter(x=p.x, y=p.y, mode="markers", text=hover, hoverinfo="text", marker=marker, name=name)
        figure.add_trace(trace, row=row, col=1)
        cross = {"symbol": "cross-thin", "size": 12, "line": {"width": 2, "color": ORIGIN}}
        figure.add_trace(
            go.Scatter(x=[0], y=[0], mode="markers", marker=cross, text=["the origin"], hoverinfo="text"),
            row=row,
            col=1,
        )
    figure.update_layout(
        title=html.escape(title, quote=False), showlegend=False, template="plotly_white", height=120 + 520 * len(panels)
    )
    figure.update_xaxes(title_text="first direction")
    figure.update_yaxes(title_text="second direction")
    return write_file(path, figure.to_html(include_plotlyjs=True, full_html=True))
