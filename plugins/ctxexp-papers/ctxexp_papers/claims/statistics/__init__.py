"""Statistics that decide claims, one module each: when is a difference none, a trend one, a best layer better."""
