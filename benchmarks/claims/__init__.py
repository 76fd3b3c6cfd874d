"""How often claims are decided where nothing is to decide, and how often rightly where the truth is planted."""
