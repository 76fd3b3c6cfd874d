"""Metrics of usages: pairs of them in one sense or two, and periods of them."""
