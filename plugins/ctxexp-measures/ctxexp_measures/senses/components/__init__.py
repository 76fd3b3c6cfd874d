"""Variance components of word vectors: the design, the estimator, the metric, its figure."""
