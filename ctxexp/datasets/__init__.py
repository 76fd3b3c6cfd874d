"""The built-in data sets; each file builds one kind of `Corpus`."""

from __future__ import annotations

from ctxexp.datasets.polysemy import polysemy
from ctxexp.datasets.qnli import qnli
from ctxexp.datasets.semeval import sick_r, sts_2012_2016, sts_b
from ctxexp.datasets.sts import sts
from ctxexp.datasets.text import text
from ctxexp.plugins import Register, hookimpl


@hookimpl
def register_datasets(register: Register) -> None:
    for factory in (polysemy, sts_2012_2016, sts_b, sick_r, sts, qnli, text):
        register(factory.__name__, factory)
