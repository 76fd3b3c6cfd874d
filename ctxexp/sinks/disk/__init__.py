"""Jobs and sweeps on disk: what a job leaves, which process works on it, how it and its sweep end; and their sinks."""
