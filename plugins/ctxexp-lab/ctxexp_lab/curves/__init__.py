"""The layers of a model measured while it trains."""
