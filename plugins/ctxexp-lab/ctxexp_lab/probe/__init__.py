"""ELMo's three ways of use, compared on a small task: frozen layers, a trained mix of them, everything trained.

`ctxexp probe`. Peters et al. 2018, equation 1; the task is word-sense classification on the embedded corpus.
"""
