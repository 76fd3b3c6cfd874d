"""What runs and verbs show: tables, figures and their words, and the interactive page of a sweep."""

from __future__ import annotations

import sys

from ctxexp.files import check_absent, write_csv, write_file
from ctxexp.lazy import VerbPackage
from ctxexp.report.changes import claimed_order
from ctxexp.report.reference_curves import published_curves
from ctxexp.report.related_runs import Training
from ctxexp.report.style import PALETTE, Ink, add_captions, colours, empty_figure, save_figure
from ctxexp.report.terminal import Document, Table
from ctxexp.report.wording import (
    LabelledResults,
    axis_label,
    decimal,
    full_title,
    shared_facts,
    unique_labels,
)

__all__ = [
    "PALETTE",
    "Document",
    "Ink",
    "LabelledResults",
    "Table",
    "Training",
    "add_captions",
    "axis_label",
    "check_absent",
    "claimed_order",
    "colours",
    "decimal",
    "empty_figure",
    "full_title",
    "published_curves",
    "save_figure",
    "shared_facts",
    "unique_labels",
    "write_csv",
    "write_file",
]

sys.modules[__name__].__class__ = VerbPackage  # ctxexp.report(...)
