"""Pure functions of arrays: geometry, spectra, correlations, hulls, neighbours."""
