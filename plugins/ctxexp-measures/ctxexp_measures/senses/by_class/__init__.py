"""Measures by class of word: part of speech, frequency, number of the model's tokens."""
