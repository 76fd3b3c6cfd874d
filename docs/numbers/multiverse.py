"""A specification curve, its numbers and their words."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from ctxexp_multiverse.specifications import CHOICES

from docs.numbers.part import Part

DECIMALS = 4


def paragraph(numbers: pd.DataFrame) -> str:
    """In how many ways the claim holds, the joint statistics against chance, and the choice that most hangs on: whose
    values' shares lie farthest apart."""
    single, joint = numbers[numbers.verdict.notna()], numbers[numbers.verdict.isna()]
    if joint.empty:  # numbers of a sweep without joint statistics: a count alone would say too much
        return (
            f"For `{single.model.iloc[0]}` the measures change by {single.effect.median():+.3f} from the first layer "
            f"to the last, the median of {len(single)} ways. How many fall is not said without what chance gives."
        )
    counted = single.verdict.value_counts()
    falls, rises = (int(counted.get(verdict, 0)) for verdict in ("falls", "rises"))
    shares = {choice: _shares(single, choice) for choice in CHOICES}
    top = max(CHOICES, key=lambda choice: shares[choice].max() - shares[choice].min())
    of = _each(single, top)
    most, least = ((at, _falls(of[of.option == at])) for at in (shares[top].idxmax(), shares[top].idxmin()))
    medians = joint[joint.name == "median effect"]
    shuffled, twin = (medians[medians.null.str.contains(null)].iloc[0] for null in ("shuffled", "twin"))
    orders = int(shuffled.draws)
    return (
        f"For `{single.model.iloc[0]}` the measures change by {shuffled.value:+.3f} from the first layer to the last, "
        f"the median of {len(single)} ways: as low for {shuffled.p:.0%} of the {orders} pairs of layers, and "
        f"{twin.expected:+.3f} for its untrained twin{_p(twin.p)}. They fall in {falls}, rise in {rises} and are open "
        f"in {len(single) - falls - rises}. Most hangs on the {top}: with *{most[0]}* they fall in {most[1]}, with "
        f"*{least[0]}* in {least[1]}. It is one training run of one model."
    )


def _each(single: pd.DataFrame, choice: str) -> pd.DataFrame:
    """A row a specification and option of the choice; what two options give alike stands under both."""
    return single.assign(option=single[choice].str.split(" or ")).explode("option")


def _shares(single: pd.DataFrame, choice: str) -> pd.Series:
    """The share that falls by option."""
    each = _each(single, choice)
    return each.verdict.eq("falls").groupby(each.option).mean()


def _falls(some: pd.DataFrame) -> str:
    return f"{(some.verdict == 'falls').sum()} of {len(some)}"


def _p(p: float) -> str:
    """What resamples say of the difference."""
    return "" if pd.isna(p) else f" (p = {p:.3f})"


def _kept(summary: Path) -> pd.DataFrame:
    """The specifications, and behind them the joint statistics, which have no verdict."""
    tables = (pd.read_csv(summary / f"table_{name}.csv") for name in ("multiverse", "multiverse_joint"))
    return pd.concat(tables, ignore_index=True).round(DECIMALS)


PART = Part(
    mark="multiverse",
    page="docs/how-to.md",
    numbers="multiverse.csv",
    kept=_kept,
    paragraph=paragraph,
    figures={"multiverse.png": "multiverse.png"},
)
