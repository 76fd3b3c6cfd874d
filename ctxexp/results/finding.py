"""A finding: what a curve by layer shows; made once (`report/findings.py`), read by all that shows a run."""

from __future__ import annotations

from dataclasses import dataclass

RUN_NAME = "{run}"  # stands in a finding's text for the run's name


@dataclass(frozen=True)
class Leg:
    """A claimed change of a curve between two layers."""

    sign: int  # 1: it rises, -1: it falls
    start: int
    end: int
    reverses: bool  # whether a change of the other sign is certain somewhere between


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What a curve by layer shows.

    Args:
        measure, statistic, task: The curve, its statistic by the shown name.
        layers: The layers in which it is defined.
        has_interval: Whether it has an interval; without one nothing is claimed.
        legs: The claimed changes along it, at most two.
        text: The sentence that says so, `{run}` in the place of the run's name.
        doubts: What the leading curve rests on, and what makes a curve shaky, a sentence each.
    """

    measure: str
    statistic: str
    task: str
    layers: tuple[int, ...]
    has_interval: bool
    legs: tuple[Leg, ...]
    text: str
    doubts: tuple[str, ...]

    def sentence(self, label: str) -> str:
        """The sentence on the run of this label."""
        return self.text.replace(RUN_NAME, label)
