"""The normalising flow of BERT-flow (Li et al. 2020)."""
