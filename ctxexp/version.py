"""The version of ctxexp, which everything may import."""

__version__ = "0.1.0"
