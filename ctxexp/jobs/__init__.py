"""Jobs and sweeps: how one is executed, what it leaves on disk, which process works on it, how it ends."""
