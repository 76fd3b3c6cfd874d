"""A paper as a file: what it says, where that stands, and by which kind of test it is tried, in TOML.

    [paper]
    title, citation, url, source (what quotes were compared with), protocol (whose experiment a verdict is on), needs
    [evidence]                    how models are measured (`models`), or where the authors' results are (`released`)
    [[claim]]
    id, place, statement, quote, test = {kind, metric, a bound}, readings = {name = {changes of the test}}
    [[follows]]
    id, place, statement, quote, from        what holds by algebra: no verdict on any model

A claim holds where it does under each reading, its defensible choices, in each model. `general`: the models that the
paper says it of in general ("decoders"): any trained one is an instance, on which the same test gives a verdict of its
own; with `minis = false` the shipped minis, of a few million parameters, are none. `passed_by`: artefacts that pass
the test where there is nothing else; such a claim is at most open.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ctxexp.command import registry
from ctxexp.errors import DataError, UnknownName
from ctxexp_papers.claims.hooks import PAPER
from ctxexp_papers.claims.kinds import Test, problems, sides_of

FOLDER = Path(__file__).parents[1] / "papers"
KEYS = {  # by table: what must be there, and what may
    "paper": ({"title", "citation", "url", "source", "protocol", "needs"}, {"released", "caveat"}),
    "evidence": (
        set(),
        {"of", "kinds", "title", "samples", "rows", "layers", "sentences", "options", "by_word", "released", "runs"},
    ),
    "claim": (
        {"id", "place", "statement", "quote", "test"},
        {"source", "readings", "models", "general", "minis", "passed_by", "caveat", "needs"},
    ),
    "follows": ({"id", "place", "statement", "quote", "from"}, {"source"}),
}


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A statement of a paper in its own words (`quote`, compared with `source`), where it stands, and its test.

    It is decided over all `models` (none: every one that a source has), and over all `readings`, changes of the test.
    """

    id: str
    place: str
    statement: str
    quote: str
    source: str
    test: Test
    readings: Mapping[str, Test]
    needs: str
    models: tuple[str, ...] = ()
    general: str = ""
    minis: bool = True
    passed_by: tuple[str, ...] = ()
    caveat: str = ""


@dataclass(frozen=True, kw_only=True)
class Consequence:
    """A statement that follows from definitions: in the paper's words, and of what it follows."""

    id: str
    place: str
    statement: str
    quote: str
    source: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class Paper:
    """A paper with its claims; `evidence` says how models are measured for them."""

    name: str
    title: str
    citation: str
    url: str
    protocol: str
    evidence: Mapping[str, Any]
    claims: tuple[Claim, ...] = ()
    follows: tuple[Consequence, ...] = ()
    released: str = ""
    caveat: str = ""

    def claim(self, id: str) -> Claim:
        """The claim of this name; raises KeyError."""
        return {claim.id: claim for claim in self.claims}[id]

    def measurements(self) -> list[Test]:
        """What all claims' tests measure, under all their readings."""
        tests = [claim.test | changes for claim in self.claims for changes in claim.readings.values()]
        return [side for test in tests for side in sides_of(test)]


def papers(names: list[str]) -> list[Paper]:
    """The papers of these names or files, or all that ship or plugins bring; raises UnknownName."""
    found = {path.stem: path for path in FOLDER.glob("*.toml")}
    for name in registry().names(PAPER):
        offer = registry().find(PAPER, name)
        with offer.plugin_call():
            found[name] = Path(offer.factory())
    paths = []
    for name in names or sorted(found):
        if name not in found and not name.endswith(".toml"):
            raise UnknownName("paper", name, sorted(found))
        paths.append(found.get(name) or Path(name))
    return [load(path) for path in paths]


def load(path: Path) -> Paper:
    """The paper of a file; raises DataError for one that isn't as a paper's must be, with what is wrong in it."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: {error}") from error
    entries = {name: table.get(name, [] if name in ("claim", "follows") else {}) for name in KEYS}
    if wrong := "; ".join(_problems(entries, sorted(set(table) - set(KEYS)))):
        raise DataError(f"{path}: {wrong}")
    paper = dict(entries["paper"])
    source, needs = paper.pop("source"), paper.pop("needs")
    claims = [{"source": source, "needs": needs, "readings": {"": {}}, **entry} for entry in entries["claim"]]
    listed: list[dict[str, Any]] = [
        {k: tuple(v) if k in ("models", "passed_by") else v for k, v in entry.items()} for entry in claims
    ]
    follows = [{"source": source, **entry} for entry in entries["follows"]]
    return Paper(
        name=path.stem,
        evidence=entries["evidence"],
        claims=tuple(Claim(**entry) for entry in listed),
        follows=tuple(Consequence(reason=entry.pop("from"), **entry) for entry in follows),
        **paper,
    )


def _problems(entries: Mapping[str, Any], unknown: list[str]) -> list[str]:
    """What is wrong with a file's tables, in words."""
    found = [f"unknown table {name}; expected {', '.join(KEYS)}" for name in unknown]
    for name, (needed, others) in KEYS.items():
        for entry in entries[name] if isinstance(entries[name], list) else [entries[name]]:
            where = f"{name} {entry.get('id', '')}".strip()
            found += [f"{where} has no {key}" for key in sorted(needed - set(entry))]
            found += [f"{where} has no words for {key}" for key in needed & set(entry) if not entry[key]]
            found += [f"{where}: unknown {key}" for key in sorted(set(entry) - needed - others)]
            if name == "claim" and "test" in entry:
                changes = entry.get("readings", {"": {}}).values()
                found += dict.fromkeys(
                    f"{where}: {one}" for change in changes for one in problems(entry["test"] | change)
                )
    return found
