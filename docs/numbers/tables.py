"""The tables that pages show of kept numbers: a function of a CSV's rows each, which gives Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pandas as pd
from ctxexp_lab.first_word.effects import AS_TOKENIZED, METRICS
from ctxexp_lab.first_word.words import difference_text, largest, layers_near_zero, number
from ctxexp_papers.claims.report import TONE, summary

from ctxexp.report import decimal
from docs.numbers.part import interval, markdown, one_run_each, without_leading_zero

TRANSFORMS = ("center", "whitening", "flow")
COMPARISONS = {"cka": "CKA", "mutual_knn": "mutual nearest neighbours"}
FIRST_WORD_MODEL = "smollm2"  # whose values stand in the table; of others what moves most
CONTRASTIVE = ("the mini", "contrastive, from the mini", "untrained", "contrastive, from untrained weights")
TOLD = 0.02  # from the truth: a world in which contextuality or a variant is farther has a row
WORLD_ESTIMATORS = ["contextuality", "1 - share of the room", "context, component of variance"]
COVERAGE_WORLDS = {"sts": "sentences", "planted": "documents"}
COVERAGE_NAMES = {
    "anisotropy": "anisotropy",
    "self_similarity": "self-similarity",
    "intra_sentence_similarity": "intra-sentence similarity",
    "max_explainable_variance": "explainable variance",
    "max_explainable_variance_centred": "the same, centred",
}


def ends(name: str) -> tuple[str, str]:
    """The columns of an interval that are named after the value's."""
    return f"{name}_low", f"{name}_high"


def percent(row: pd.Series, name: str = "context") -> str:
    """A share with its interval: `35.7% [35.4, 36.0]`."""
    value, low, high = (round(100 * row[column], 1) for column in (name, *ends(name)))
    return f"{value:z.1f}% [{low:z.1f}, {high:z.1f}]"


def grid(
    numbers: pd.DataFrame,
    row: str,
    column: str,
    one: Callable[[Any], str],
    rows: Iterable[str] = (),
    columns: Iterable[str] = (),
) -> list[list[str]]:
    """A row and a column a value of these columns (by default in their order); empty where there is no number."""
    by = {(at[row], at[column]): one(at) for _, at in numbers.iterrows()}
    columns = [*columns] or numbers[column].unique()
    return [[str(r), *(by.get((r, c), "") for c in columns)] for r in [*rows] or numbers[row].unique()]


def court(numbers: pd.DataFrame, quotes: bool = False) -> str:
    """A row a claim: what it says, whose it is, the verdict, and the effect that decides. With `quotes` the paper's own
    words and the caveat are folded behind the statement."""
    rows = []
    for row in numbers.fillna("").to_dict("records"):
        statement, caveat, paper = row["statement"], row["caveat"], row["paper"]
        claim = f"{statement}<br>{paper}{': ' * bool(caveat)}{caveat}"
        if quotes:
            words = f"“{row['quote']}” ({row['place']}) {caveat}".strip()
            claim = f"<details><summary>{statement}</summary>{words}</details>{paper}"
        verdict = row["ruling"] + " on models" * (row["decided_on"] == "models")
        rows.append([claim, verdict, row["effect"]])
    head = ["claim", "verdict", "effect that breaks it, else the widest"]
    return f"{markdown(head, rows)}\n\n{summary(numbers)} {TONE}"


def follows(numbers: pd.DataFrame) -> str:
    """A line a statement that holds by algebra, or on drawn vectors, and why."""
    rows = numbers.to_dict("records")
    return "\n".join(f"- **{row['statement']}** ({row['paper']}) {row['follows_from']}" for row in rows)


def league(numbers: pd.DataFrame) -> str:
    """A row a model: the raw Spearman, what each transform gains, and all in their order, `=` between level ones."""

    def one(row: pd.Series) -> str:
        gain = f"{row.gain:+.2f} [{row.gain_ci_low:.2f}, {row.gain_ci_high:.2f}]"
        return gain if row["transform"] != "none" else f"{row.average:.2f}"

    names = ["none", *TRANSFORMS]
    rows = grid(numbers, "model", "transform", one, (), names)
    for row, (_, of) in zip(rows, numbers.groupby("model", sort=False), strict=True):
        signs = [" > " if low > 0 else " = " for low in of.lead_ci_low[:-1]]
        row.append("".join(map("".join, zip(of["transform"], [*signs, ""], strict=True))))
    table = markdown(["", *(f"`{name}`" for name in names), "in order; `=`: level"], rows)
    return table + one_run_each(numbers.model, intervals=False)


def distil(numbers: pd.DataFrame) -> str:
    """A row a way; speeds as multiples of the model's own, since they were taken side by side."""
    own = numbers[numbers.way == "the model"].iloc[0]
    rows = []
    for _, one in numbers.iterrows():
        kept = f"{one.kept:.0%} [{one.kept_low:.0%}, {one.kept_high:.0%}]"
        speed = f"{one.words_per_second / own.words_per_second:.0f}"
        rows.append([str(one.way), f"{one.bytes_kept / 1e6:.1f}", speed, interval(one, "spearman", ".1f"), kept])
    return markdown(["sentence vectors of", "MB", "speed, the model's = 1", "Spearman x 100", "of the model's"], rows)


def minis(numbers: pd.DataFrame) -> str:
    """A row a model: each measure's mean over the seeds in the last layer, what one seed is off by as a rule, and the
    most that it is off by so in any layer."""

    def cell(of: pd.DataFrame) -> str:
        last = of.loc[of.layer.idxmax()]
        mean, off, most = map(without_leading_zero, (last["mean"], last.sd, of.sd.max()))
        return f"{mean}, {off} ({most})"

    measures = list(numbers.measure.unique())
    rows = [
        [f"`{model}`", *(cell(of[of.measure == measure]) for measure in measures)]
        for model, of in numbers.groupby("model", sort=False)
    ]
    return markdown(["model", *measures], rows)


def multiverse(numbers: pd.DataFrame) -> str:
    """Two tables: the joint statistics beside chance, and in how many ways the measures fall and rise."""
    of = numbers[numbers.verdict.isna()]

    def written(name: str, value: float, p: float | None = None) -> str:
        text = decimal(value, 3, sign=True) if name == "median effect" else f"{value:.0%}"
        return text if p is None or pd.isna(p) else f"{text}, p = {p:.3f}"

    names = list(of["name"].unique())
    joint = [[str(numbers.model.iloc[0]), *(written(name, of[of["name"] == name].value.iloc[0]) for name in names)]]
    joint += grid(of, "null", "name", lambda row: written(row["name"], row.expected, row.p), (), names)
    verdicts = ["falls", "rises", "open", "all"]
    counts = pd.crosstab(numbers.definition, numbers.verdict, margins=True, margins_name="all")[verdicts]
    ways = [[str(definition), *map(str, row)] for definition, *row in counts.itertuples()]
    return f"{markdown(['all ways together', *names], joint)}\n\n{markdown(['ways, by definition', *verdicts], ways)}"


def two_spaces(numbers: pd.DataFrame) -> str:
    """By each measure the most alike layers of two models, and the two layers of one model that the measures disagree
    most on."""
    keys = ["run_a", "layer_a", "run_b", "layer_b"]
    by_measure = {name: numbers[numbers.measure == name].set_index(keys) for name in COMPARISONS}
    chosen = {
        f"most alike of two models by {title}": by_measure[name].query("run_a != run_b").adjusted.idxmax()
        for name, title in COMPARISONS.items()
    }
    one, other = (of.query("run_a == run_b").adjusted for of in by_measure.values())
    chosen["the measures disagree most of one model"] = (one - other).abs().idxmax()
    rows = [
        [what, f"{at[0]} {at[1]}, {at[2]} {at[3]}"]
        + [interval(of.loc[at], "adjusted", ".2f", ends("adjusted")) for of in by_measure.values()]
        for what, at in chosen.items()
    ]
    return markdown(["", "layers", *COMPARISONS.values()], rows) + one_run_each([*numbers.run_a, *numbers.run_b])


def first_word(numbers: pd.DataFrame) -> str:
    """A row a condition: one model's words in the layer that moves most and the layers near 0, against the paper's
    level and the length-matched one; its sentences, where these were measured. Then the other models' largest moves."""
    words, sentences = (numbers[numbers.measure == metric] for metric in METRICS)
    own, shown = (rows[rows.model == FIRST_WORD_MODEL] for rows in (words, sentences))
    others = [str(model) for model in words.model.unique() if model != FIRST_WORD_MODEL]
    at, near = int(largest(own).layer), "within .05 of 0"
    head = ["what stands first", f"layer {at}", f"layers {near}", f"length-matched, layer {at}", near]
    head += [f"STS-B, layer {int(largest(shown).layer)}"] if len(shown) else []
    rows = []
    for condition, curve in own.groupby("condition", sort=False):
        row = curve[curve.layer == at].iloc[0]
        cells = [str(condition), number(row.value, METRICS[0]), layers_near_zero(curve.value)]
        cells += [number(row.matched, METRICS[0]), layers_near_zero(curve.matched)]
        if len(shown):
            of = shown[(shown.condition == condition) & (shown.layer == largest(shown).layer)]
            cells += [number(of.iloc[0].value, METRICS[1]) if len(of) else "as tokenized"]
        rows.append(cells)
    moved = [largest(words[(words.model == model) & (words.condition != AS_TOKENIZED)]) for model in others]
    moves = [f"{row.model} by {difference_text(row)} ({row.condition})" for row in moved]
    return f"{markdown(head, rows)}\n\nAny layer of others moves at most so: {'; '.join(moves)}."


def contrastive(numbers: pd.DataFrame) -> str:
    """A row a model, a column a transform; the gain over the mini without any behind each."""

    def one(row: pd.Series) -> str:
        is_reference = (row.model, row["transform"]) == ("the mini", "none")
        gain = "" if is_reference else f"; {row.gain_low:+.1f} to {row.gain_high:+.1f}"
        return interval(row, "spearman", ".1f") + gain

    names = ("none", "whitening", "flow")
    rows = grid(numbers, "model", "transform", one, CONTRASTIVE, names)
    return markdown(["model", *names], rows) + one_run_each(numbers.model)


def what_is_context(numbers: pd.DataFrame) -> str:
    """A row a model with the context in the highest and the last layer, and where each word is read alone; the sense
    where it is largest, among ambiguous words."""
    head = [
        "model",
        "context: highest",
        "last layer",
        "each word alone, at most",
        "sense of ambiguous words, highest",
    ]

    def highest(rows: pd.DataFrame, part: str) -> str:
        top = rows.loc[rows[part].idxmax()]
        return f"{percent(top, part)} (layer {top.layer})"

    rows = []
    for model, of in numbers.groupby("model", sort=False):
        layers, some = (of[of.words == words].sort_values("layer") for words in ("all", "ambiguous"))
        context = highest(layers, "context"), percent(layers.iloc[-1])
        rows.append([f"`{model}`", *context, f"{layers.floor.max():z.1%}", highest(some, "sense")])
    return markdown(head, rows) + one_run_each(numbers.model)


def interval_coverage(numbers: pd.DataFrame) -> str:
    """A row a measure with the least and highest coverage of all its curves and layers, and the least and highest of
    their widths over the right one, the layers' mean."""
    shown = numbers[numbers.world.isin(list(COVERAGE_WORLDS))].copy()
    shown["held"] = shown.whole.where(shown.world == "sts").fillna(shown["mean"])
    shown["measure"] = shown.curve.str.partition("/")[0]
    rows = []
    for measure, name in COVERAGE_NAMES.items():
        cells = [name]
        for world in COVERAGE_WORLDS:
            mine = shown[(shown.world == world) & (shown.measure == measure)]
            widths = mine.groupby("curve").width.mean()
            cells.append(f"{_ends(mine.held, 3)} ({_ends(widths, 2)})" if len(mine) else "")
        rows.append(cells)
    draws = {world: sorted(set(shown[shown.world == world].draws)) for world in COVERAGE_WORLDS}
    heads = [f"{what} ({' or '.join(map(str, draws[world]))} draws)" for world, what in COVERAGE_WORLDS.items()]
    return markdown(["raw, adjusted, share and its step", *heads], rows)


def _ends(values: pd.Series, decimals: int) -> str:
    ends_of = (without_leading_zero(value, decimals) for value in (values.min(), values.max()))
    return " to ".join(dict.fromkeys(ends_of))


def contextuality(numbers: pd.DataFrame) -> str:
    """Contextuality by layer, a row a model; and the paper's findings, a column a model."""
    models = [rows.sort_values("layer") for _, rows in numbers.groupby("model", sort=False)]
    names = [f"`{rows.model.iloc[0]}`" for rows in models]
    curves = [
        [
            name,
            " ".join(map(_two, rows.value)),
            f"{_two(rows.lowest.iloc[-1])} to {_two(rows.highest.iloc[-1])}",
            _two(rows.alone.max()),
        ]
        for name, rows in zip(names, models, strict=True)
    ]
    head = ["model", "contextuality, layers 0, 1, ...", "its variants, last layer", "each word alone, at most"]
    findings = [[title, *(cell(rows) for rows in models)] for title, cell in FINDINGS.items()]
    return f"{markdown(head, curves)}\n\n{markdown(['the paper finds', *names], findings)}{one_run_each(names)}"


def known_contextuality(numbers: pd.DataFrame) -> str:
    """How each estimator does where the answer is known; what it says of each world; and of networks with a knob."""
    worlds, changes, networks = (numbers[numbers.part == part] for part in ("worlds", "changes", "networks"))
    orders = worlds[worlds.of == "orders"].set_index(["name", "estimator"])
    worlds = worlds[worlds.of != "orders"]
    ends = worlds[worlds.estimator.isin(["lowest", "highest"]) & (worlds["at"] == 0.5)].pivot_table(
        "value", "of", "estimator"
    )
    worlds = worlds[~worlds.estimator.isin(["lowest", "highest"])]
    drawn = "those drawn at random"
    worlds = worlds.assign(
        error=(worlds.value - worlds.truth).abs(), kind=np.where(worlds.of.str.startswith("random"), drawn, "")
    )
    judged = []
    for name, found in worlds.groupby("estimator", sort=False):
        parts = found[found.kind == ""], found[found.kind == drawn], found[found.truth == 0]
        slopes = [np.polyfit(of.truth, of.value, 1)[0] for _, of in found.groupby("of")]
        moved = changes[changes.estimator == name].value.abs().max()
        counts = [
            orders.loc[(of, name)] if (of, name) in orders.index else None for of in ("false orders", "steps of .03")
        ]
        judged.append(
            [
                name,
                *(f"{_two(part.error.mean())} ({_two(part.error.max())})" for part in parts),
                f"{_two(min(slopes))} to {_two(max(slopes))}",
                *("" if n is None else f"{n.value:.0f} of {n['at']:.0f}" for n in counts),
                _two(moved),
            ]
        )
    head = ["estimator", "error: mean (largest)", drawn, "truth 0", "slope", "false orders"]
    head += ["steps of .03 found", "moves by up to"]
    half = worlds[(worlds.kind == "") & (worlds["at"] == 0.5)]
    said = half.pivot_table("value", "of", "estimator", sort=False)[WORLD_ESTIMATORS]
    truth = half.groupby("of").truth.first()
    mine = ends.loc[said.index].assign(value=said[said.columns[0]])
    is_told = mine.sub(truth.loc[said.index], axis=0).abs().max(axis=1) > TOLD
    is_told.iloc[0] = True  # the world that the others add to
    of_world = [
        [of, *map(_two, (truth[of], first)), f"{_two(ends.lowest[of])} to {_two(ends.highest[of])}", *map(_two, rest)]
        for of, (first, *rest) in zip(said.index[is_told], said[is_told].to_numpy().tolist(), strict=True)
    ]
    others = f"Within {_two(TOLD)} of the truth, as all its variants: {'; '.join(said.index[~is_told])}."
    knobs = networks[(networks.estimator == "contextuality") | networks.estimator.isna()]
    knobs = knobs[knobs.name != "each word alone"]  # is on the measure's own page
    of_network = [
        [f"`{of}`", name, " ".join(map(_two, rows.value))]
        for (of, name), rows in knobs.groupby(["of", "name"], sort=False)
    ]
    tables = (
        (head, judged),
        (["world", "truth", said.columns[0], "its variants", *said.columns[1:]], of_world),
        (["model", "its words", "layers 0, 1, ..."], of_network),
    )
    first, second, third = (markdown(*each) for each in tables)
    return "\n\n".join([first, second, others, third])


def _gain(name: str, sign: int) -> Callable[[pd.DataFrame], str]:
    """Whether the last layer has gained since layer 1, with the sign that the paper found."""

    def cell(rows: pd.DataFrame) -> str:
        value, low, high = (rows[name + end].iloc[-1] for end in ("", "_low", "_high"))
        said = "open" if low <= 0 <= high or abs(value) < 0.02 else "yes" if sign * value > 0 else "no"
        return f"{said}: {decimal(value, 2, sign=True)}"

    return cell


def _between(name: str, holds: Callable[[pd.Series], bool]) -> Callable[[pd.DataFrame], str]:
    """Whether all layers but the input layer do, and between which values they lie."""

    def cell(rows: pd.DataFrame) -> str:
        values = rows[name].iloc[1:]
        return f"{'yes' if holds(values) else 'no'}: {decimal(values.min(), 2)} to {decimal(values.max(), 2)}"

    return cell


def _two(value: float) -> str:
    return without_leading_zero(value, 2)


FINDINGS = {
    "the last layer is more contextual than layer 1: contextuality": _gain("gain", 1),
    "the same on the paper's scale: adjusted self-similarity falls": _gain("paper_gain", -1),
    "unrelated words are alike in every layer but the input: mean cosine above .05": _between(
        "anisotropy", lambda values: bool((values > 0.05).all())
    ),
    "a sentence's words are more alike than chance: adjusted, above .05": _between(
        "intra_sentence_similarity", lambda values: bool((values > 0.05).all())
    ),
}
