"""Finished runs as evidence, and whether one is a paper's own experiment: its weights by their SHA-256, its text by
fingerprint, its choices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ctxexp import Results
from ctxexp.results import LAYER, Key, RunInfo
from ctxexp_papers.claims.evidence import Inputs, Member, Source
from ctxexp_papers.claims.kinds import Test, key_of
from ctxexp_papers.claims.statistics import LayerCurve

WORDS = {"fold_case": "False", "deduplicate": "True", "sample": "None", "punctuation": "drop"}
"""How words are counted by default (conf/ctxexp.yaml)."""
ENCODING = {"pooling": "mean", "final_norm": True, "dtype": "float32", "prefix": "as_tokenizer"}
SAMPLED = ("one_per_sentence", "uniform", "")  # baselines of random occurrences, as the paper's
SENSES = "self_similarity_by_senses"


def of_runs(inputs: Inputs, evidence: Mapping[str, Any], tests: Sequence[Test]) -> list[Source]:
    """Finished runs of the paper's models, newest first, by weights, text, transform and control: the paper's own, then
    those that depart from it least."""
    protocol = evidence["runs"]
    chosen = {text.split()[0] for text in inputs.models}
    found: dict[tuple[str, ...], Source] = {}
    for label, results in inputs.runs.items():
        info = results.info
        if info.model.name not in protocol["weights"] or (chosen and info.model.name not in chosen):
            continue
        reasons = departures(info, protocol)
        weights = info.model.weights or "unknown"
        key = ("" if not reasons else weights, info.corpus.fingerprint, info.transform.name, info.control)
        title = f"weights {weights if reasons else 'of the paper'}, corpus {info.corpus.name or 'unknown'}"
        title += "".join(f", {one}" for one in key[2:] if one != "none")
        source = found.setdefault(key, Source("other" if reasons else "protocol", title))
        model = info.model.name
        if reasons:
            source.departures.setdefault(model, reasons)
        source.members.append(Member(model, curves_of(results, tests), link=label))
    for source in found.values():  # of a model the newest run that has a curve has it
        models = dict.fromkeys(member.model for member in source.members)
        own = {
            model: [m for m in source.members if m.model == model] for model in protocol["weights"] if model in models
        }
        source.members = [
            Member(model, {k: v for m in reversed(members) for k, v in m.curves.items()}, link=members[0].link)
            for model, members in own.items()
        ]
    return sorted(found.values(), key=lambda s: max(map(len, s.departures.values()), default=0))


def curves_of(results: Results, tests: Sequence[Test]) -> dict[str, LayerCurve]:
    """The run's curves that tests are of, whatever the labels of its measures: these are known by the metric that they
    say they are of. What doesn't say it is no evidence."""
    info, curves = results.info, {}
    labels: dict[str, str] = {}
    for label in info.measures:
        if info.measure(label).variant is not None:
            name = info.definition_name(label)
            labels[name] = label if label == name else labels.get(name, label)
    for test in tests:
        name, statistic = test["metric"].split("/")
        key = Key.of(labels.get(name, ""), statistic)
        if statistic.startswith("size_matched") and key not in results.by_key and _is_size_matched(info, key):
            key = key._replace(baseline="")
        estimates = results.by_key.get(key)
        if estimates is None or key.place != LAYER or not np.isfinite(estimates.value).any():
            continue
        if (
            not key.baseline
            and key.statistic.startswith(("adjusted", "share"))
            and not _is_papers(info, key, statistic)
        ):
            continue
        counts = results.by_key.get(key._replace(statistic="n", baseline=""))
        n = float(counts.value[-1]) if counts else float("nan")
        resampling = (info.seed, info.bootstrap, info.corpus.fingerprint)
        layers = tuple(range(len(estimates.value)))
        curves[key_of(test)] = LayerCurve(*estimates, layers, None, results.replicates.get(key), resampling, n)
    return curves


def _is_size_matched(info: RunInfo, key: Key) -> bool:
    return info.baseline.name == "size_matched" or info.measure(key.measure).level == "size-matched"


def _is_papers(info: RunInfo, key: Key, statistic: str) -> bool:
    """Whether plain `adjusted` is by the level that a test is of: random occurrences as the paper's, or groups of each
    one's own size. Adjusted by another twin of the group (its positions, its frequency) it is no reading of the paper.
    """
    if _is_size_matched(info, key):
        return statistic.startswith("size_matched")
    return info.baseline.name in SAMPLED and not statistic.startswith("size_matched")


def departures(info: RunInfo, protocol: Mapping[str, Any]) -> list[str]:
    """Differences between a run and the paper's own experiment, a phrase each; empty if there are none. What a run
    doesn't state, since its parts have no such option, isn't one."""
    corpus, details = info.corpus, info.model.details
    found = [_weights(info, protocol["weights"].get(info.model.name, ""))]
    if corpus.fingerprint != protocol["fingerprint"]:
        found.append(
            f"not the paper's text (corpus {corpus.name or 'unknown'}; the paper's is dataset={protocol['corpus']})"
        )
    words, choices = {**WORDS, **protocol.get("words", {})}, []
    if corpus.min_contexts != protocol["min_contexts"]:
        choices.append(f"min_contexts={corpus.min_contexts}, the paper's is {protocol['min_contexts']}")
    choices += [f"layers {', '.join(map(str, info.model.layers))} only"] if info.model.layers else []
    choices += [f"words.max_contexts={corpus.max_contexts}"] if corpus.max_contexts is not None else []
    choices += ["one_pass.shards"] if corpus.one_pass else []
    choices += [f"words.{k}={v}" for k, usual in words.items() if (v := str(corpus.choices.get(k, usual))) != usual]
    choices += [f"{k}={details[k]}" for k, usual in ENCODING.items() if details.get(k, usual) != usual]
    choices += [f"{k}={details[k]}" for k in ("kwargs", "dequantized") if details.get(k)]
    choices += [f"transform {info.transform.name}"] if info.transform.name != "none" else []
    choices += [f"control {info.control}"] if info.control != "none" else []
    found.append(f"not the paper's protocol ({', '.join(choices)})" if choices else "")
    return [reason for reason in found if reason]


def _weights(info: RunInfo, expected: str) -> str:
    """Why a run's weights aren't the paper's; empty where they are."""
    if info.model.weights == "untrained" or info.model.details.get("untrained"):
        return "not the paper's weights (untrained)"
    digest = str(info.model.details.get("weights_sha256") or "")
    if not digest:
        return "weights not verified (the run states no SHA-256 of them; run it again)"
    if not expected:
        return f"weights not verified (no SHA-256 of the paper's {info.model.name} is on record)"
    if digest != expected:
        return f"not the paper's weights (SHA-256 {digest[:12]}..., the paper's has {expected[:12]}...)"
    if warnings := info.model.details.get("warnings"):
        return f"maybe not the paper's model ({warnings})"
    return ""
