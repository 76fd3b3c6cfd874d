"""What the docs say of numbers: each part of a page with the numbers, figures and words that it is made of."""
