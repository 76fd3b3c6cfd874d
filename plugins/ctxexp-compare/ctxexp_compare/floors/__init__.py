"""Floors: what cosines unrelated words and sentences have, by layer, so that a high one is known as such."""
