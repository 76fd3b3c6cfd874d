"""Maximum explainable variance: how well one static vector could stand for all of a word's occurrences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, get_args

import numpy as np

from ctxexp.errors import ConfigError
from ctxexp.maths import influence
from ctxexp.maths.geometry import Definition, explained_variance
from ctxexp.maths.prepared import PreparedRows, takes_prepared
from ctxexp.metric import GroupMean, Over

WORDS = {
    "uncentred": "uncentred, as printed: share of the first squared singular value (Definition 3)",
    "centred": "centred: share of the first principal component",
    "released": "as released: variance along the first uncentred direction over that about the mean",
}


class MaxExplainableVariance(GroupMean):
    """Mean over words of the share of variance that one direction explains, in [0, 1] (Ethayarajh 2019, Definition 3).

    `definition`: uncentred (as printed), centred (PCA) or released (what the published code computed); word and
    chance level always by the same one. The share falls with the number of rows even for noise: at 768 dimensions .22
    at 5 rows, .005 at 1,000. So `baselines=[size_matched]`, the default, is the same score on random groups of the
    word's own size. `[run]` is the paper's way, the score on the rows of the run's `baseline=` (1,000), with which
    noise has an adjusted share of .22 at 5 rows; `[run,size_matched]` has the other one beside it. `sample`: so
    many random words only.
    """

    over: ClassVar[Over] = "word"
    title = "Maximum explainable variance"
    unit: ClassVar[str] = "share"
    maximum: ClassVar[float | None] = 1.0
    subject: ClassVar[str] = "words"
    lower: ClassVar[str] = "harder to replace by one vector each"
    higher: ClassVar[str] = "easier to replace by one vector each"
    line: ClassVar[float | None] = 0.05  # "on average, less than 5% of the variance" (Section 4.3)

    def __init__(
        self,
        *,
        definition: Definition = "uncentred",
        baselines: Sequence[str] = ("size_matched",),
        sample: int | None = None,
    ) -> None:
        if definition not in get_args(Definition):
            raise ConfigError(
                f"max_explainable_variance definition={definition!r}: expected one of {', '.join(get_args(Definition))}"
            )
        super().__init__(sample=sample, baselines=baselines)
        self._of: Definition = definition
        self.variant = "" if definition == "uncentred" else definition
        shift = {"shift"} if definition == "centred" else set()
        self.invariances = frozenset({"rotation", "scale", "permutation"} | shift)
        self.definition = WORDS[definition]

    @takes_prepared
    def score(self, x: np.ndarray | PreparedRows) -> np.ndarray:
        return explained_variance(x, definition=self._of)

    @takes_prepared
    def influence(self, x: np.ndarray | PreparedRows) -> np.ndarray:
        return influence.of_explained_variance(x, definition=self._of)
