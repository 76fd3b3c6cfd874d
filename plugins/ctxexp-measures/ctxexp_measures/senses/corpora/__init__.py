"""Corpora of real senses and usages, in their publishers' formats."""
