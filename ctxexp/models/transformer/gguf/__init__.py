"""GGUF, the single-file format of llama.cpp."""
