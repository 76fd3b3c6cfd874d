"""Baselines of twins: unrelated occurrences at the same place in the sentence, or of the same frequency."""
