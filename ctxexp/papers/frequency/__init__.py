"""Frequency geometry (Li et al. 2020) and degeneration (Gao et al. 2019)."""
