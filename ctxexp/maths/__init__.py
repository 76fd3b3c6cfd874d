"""Pure functions of arrays: geometry, spectra, correlations, clusters."""
