"""The softmax link of causal and masked language models (Li et al. 2020, section 2): `ctxexp link`."""
