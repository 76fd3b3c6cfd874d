"""What numpy alone runs: vectors of two places compared, a server asked, files of vectors and pins read.

Modules of this folder import numpy, the standard library and each other, by relative names, so that a small
distribution can hold them without the rest.
"""
