"""Whatever `transformers` loads: its files, checks, pieces and vectors."""
