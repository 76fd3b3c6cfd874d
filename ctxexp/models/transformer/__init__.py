"""Models that `transformers` loads: their files, checks, pieces and vectors."""
