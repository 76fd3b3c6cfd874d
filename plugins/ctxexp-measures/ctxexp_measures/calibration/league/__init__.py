"""Does isotropy help? Transforms ranked by agreement with people, beside what they did to the space."""
