"""Measures beyond the first three, in five plugins: isotropy, frequency, senses, calibration, words."""
