"""Whole corpora measured in one pass: vectors are summed while they are encoded, and none is stored."""
