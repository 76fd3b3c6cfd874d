"""ELMo: its files, its network, its encoder."""
