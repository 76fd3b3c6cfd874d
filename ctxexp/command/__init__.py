"""The command `ctxexp`: Hydra's configs and what they build, and the verbs beside them."""
