"""Chance levels: what unrelated occurrences give."""
