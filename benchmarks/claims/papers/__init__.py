"""Worlds of known truth for the claims of each paper, a module each: `WORLDS`, by claim."""
