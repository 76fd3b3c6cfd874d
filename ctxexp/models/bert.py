"""`model=bert`: the mini that ships with ctxexp, the published bert-base-cased, or either one untrained."""

from ctxexp.models.huggingface import paper_model

bert = paper_model(
    "bert", "All layers of BERT: weights=mini ships with ctxexp, weights=published is bert-base-cased.", 436e6
)
