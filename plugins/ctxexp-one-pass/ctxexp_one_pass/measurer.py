"""What `words.one_pass` asks for, as ctxexp's contract has it."""

from __future__ import annotations

from ctxexp.dataset import Corpus, Shards
from ctxexp.engine import Engine
from ctxexp.measuring.one_pass.measurer import Dealing, Measurer, Unstored
from ctxexp.progress import Progress
from ctxexp_one_pass.dealt import deal
from ctxexp_one_pass.require import require


class OnePassMeasurer(Measurer):
    """Sums over rows, shard by shard."""

    require = staticmethod(require)

    def text(self, text: Corpus | Shards, dealing: Dealing, engine: Engine, progress: Progress) -> Unstored:
        return deal(text, dealing, engine, progress)
