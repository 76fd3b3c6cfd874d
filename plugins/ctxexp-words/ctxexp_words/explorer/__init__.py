"""The word explorer of a sweep's page: occurrences of some words as points by layer, and measures of all words."""

from __future__ import annotations

from ctxexp_words.explorer.page_section import section
from ctxexp_words.explorer.word_map import WordMap as observe  # noqa: N813  # a protocol's method

__all__ = ["observe", "section"]
