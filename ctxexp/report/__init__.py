"""Figures, their words and colours, and the interactive page of a sweep."""
