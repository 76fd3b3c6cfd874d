"""Tables and figures of the docs: each part of a page with the numbers that it is made of."""
