"""Pins: reference vectors of a model in a small file, and whether the model still gives them."""
