"""The command `ctxexp`: Hydra's configs to studies, jobs, sweeps, and the verbs beside them."""
