"""`model=gpt2`: the mini that ships with ctxexp, the published gpt2, or either one untrained."""

from ctxexp.models.huggingface import paper_model

gpt2 = paper_model("gpt2", "All layers of GPT-2: weights=mini ships with ctxexp, weights=published is gpt2.", 548e6)
