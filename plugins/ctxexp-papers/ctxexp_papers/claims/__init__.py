"""Papers' claims as tests: what a paper says, the evidence on it, and the verdict, over all defensible choices."""
