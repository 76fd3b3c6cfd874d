"""Models that transformers loads: where their files are, what loads and reads them, what is left unused."""
