"""Sinks: the pieces of a text whose vectors are far longer than others, or that draw most of the attention."""
