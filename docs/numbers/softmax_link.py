"""The softmax link of the minis: what the page's table shows of it."""

from __future__ import annotations

import pandas as pd

from docs.numbers.part import Part, markdown, one_run_each

DECIMALS = 3
SHOWN = (
    "own_pmi", "own_pmi_within", "log_p_within", "counted_pmi_given_log_p", "counted_pmi_given_log_p_within",
    "second_order_given_frequency",
)  # fmt: skip


def table(numbers: pd.DataFrame) -> str:
    """A row a correlation; of each model the value with its interval, and the middle 95% of chance where there is
    one."""
    models = [str(model) for model in numbers.model.unique()]
    cells = numbers.set_index(["statistic", "model"])
    rows = []
    for statistic in SHOWN:
        row = [f"`{statistic}`"]
        for model in models:
            one = cells.loc[(statistic, model)]
            chance = "" if pd.isna(one.chance_low) else f"; chance {one.chance_low:.2f} to {one.chance_high:.2f}"
            row.append(f"{one.value:.2f} [{one.low:.2f}, {one.high:.2f}]{chance}")
        rows.append(row)
    return markdown(["correlation", *models], rows) + one_run_each(models)


PART = Part(
    mark="softmax link",
    page="docs/measures/softmax-link.md",
    numbers="softmax_link.csv",
    kept=lambda made: pd.read_csv(made / "link.csv").round(DECIMALS),
    table=table,
)
