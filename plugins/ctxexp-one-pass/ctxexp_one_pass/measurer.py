"""What `words.one_pass` asks for, as ctxexp's contract has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ctxexp.baseline import Baseline
from ctxexp.control import Control
from ctxexp.dataset import Corpus, Shards
from ctxexp.engine import Engine
from ctxexp.measuring.one_pass.measurer import Dealing, Measurer, Unstored
from ctxexp.metric import Metric
from ctxexp.progress import Progress
from ctxexp.transform import Transform
from ctxexp_one_pass.dealt import deal
from ctxexp_one_pass.require import require


class OnePassMeasurer(Measurer):
    """Sums over rows, shard by shard."""

    def require(
        self,
        metrics: Mapping[str, Metric],
        baseline: Baseline,
        transform: Transform,
        control: Control,
        *,
        others: Sequence[str] = (),
    ) -> None:
        require(metrics, baseline, transform, control, others=others)

    def text(self, text: Corpus | Shards, dealing: Dealing, engine: Engine, progress: Progress) -> Unstored:
        return deal(text, dealing, engine, progress)
