"""Frequency geometry: how norms and neighbourhoods change with the words' frequency."""
