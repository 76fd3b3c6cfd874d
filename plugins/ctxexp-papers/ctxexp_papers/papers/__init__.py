"""Papers, a module each: `paper()` gives its claims with their tests. A module added here is offered by name."""
