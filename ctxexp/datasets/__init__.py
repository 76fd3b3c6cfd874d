"""The built-in data sets, where they are; each file builds one kind of `Corpus`."""

from __future__ import annotations

from ctxexp.datasets.checks import tokenizer
from ctxexp.datasets.downloads import archive_members, fetch
from ctxexp.datasets.reading import read_table, text_lines
from ctxexp.datasets.text import TextUnits
from ctxexp.files import user_path
from ctxexp.plugins import Register, hookimpl

__all__ = [
    "TextUnits",
    "archive_members",
    "fetch",
    "read_table",
    "text_lines",
    "tokenizer",
    "user_path",
]


@hookimpl
def register_datasets(register: Register) -> None:
    register("polysemy", "ctxexp.datasets.polysemy:polysemy")
    register("sts_2012_2016", "ctxexp.datasets.sts:sts_2012_2016")
    register("sts_b", "ctxexp.datasets.sts:sts_b")
    register("sick_r", "ctxexp.datasets.sts:sick_r")
    register("sts", "ctxexp.datasets.sts:sts")
    register("text", "ctxexp.datasets.text:text")
