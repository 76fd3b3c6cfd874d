"""A paper and its claims: what it says and where, on what protocol, and how each claim is tested."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ctxexp_papers.claims.checks import Check
from ctxexp_papers.claims.protocol import Protocol
from ctxexp_papers.claims.source import Inputs, Source


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A statement of a paper, where it stands there, and its test, fixed before the evidence was looked at.

    `check` tests it on a source of one of the types `on`: checks by model and variant. A claim is decided over all
    `models` (on other models it is reported, and decides nothing) and over all `variants`, its defensible
    specifications, in the order of reporting ("" if there is one): it holds where it does in each model under each
    specification, and is open where that hangs on the choice. With no `models` every model that a source has counts.

    `general`: the models that the paper says it of in general ("decoders"), empty where it speaks of its own alone.
    Each of them is an instance, so that the test on an offered one gives a verdict on that model, which is told and
    counted apart from one on the paper's protocol. `minis`: whether the shipped minis, of a few million parameters,
    are instances too.

    `quote`: the paper's own words, compared with `quote_source`. `null`: what the test must not call an effect.
    `reason`: why the threshold is where it is. `reversal`: what would change the verdict. `contradicts`: claims that
    say otherwise, as "paper/claim".
    """

    id: str
    section: str
    statement: str
    quote: str
    quote_source: str
    test: str
    null: str
    reason: str
    reversal: str
    check: Callable[[Any], list[Check]]
    on: tuple[type[Source], ...]
    evidence: str  # what it needs, with the command or folder that gives it, as in "not run: needs ..."
    models: tuple[str, ...] = ()
    variants: tuple[str, ...] = ("",)
    contradicts: tuple[str, ...] = ()
    general: str = ""
    minis: bool = True

    @property
    def place(self) -> str:
        """Where the claim stands in the paper: "section 4.2", "figure 2"."""
        return f"section {self.section}" if self.section[:1].isdigit() else self.section


@dataclass(frozen=True, kw_only=True)
class Paper:
    """A paper with claims. `name` is that of its module ("skean_2025"), `title` heads its report.

    `sources` turns what a user offers into evidence, the paper's own first; `released` says where the authors' results
    are had. `labels` are the models' names in reports, `abstract` the claims that its abstract makes, `rule` says what
    a reader must know of the tests as a whole, `notes` gives further sentences for the end of its report.
    """

    name: str
    title: str
    citation: str
    url: str
    protocol: Protocol
    claims: tuple[Claim, ...]
    sources: Callable[[Inputs], Sequence[Source]]
    released: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    abstract: tuple[str, ...] = ()
    rule: str = ""
    notes: Callable[[], Sequence[str]] = tuple

    def claim(self, id: str) -> Claim:
        """The claim of this name; raises KeyError."""
        return {claim.id: claim for claim in self.claims}[id]
