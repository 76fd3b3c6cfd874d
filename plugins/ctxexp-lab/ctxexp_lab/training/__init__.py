"""The recipe of the small models: data, networks, optimiser, and the loop."""
