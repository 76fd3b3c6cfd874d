"""From rows to curves: which rows belong together, chance levels, intervals."""
