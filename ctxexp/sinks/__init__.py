"""Where results are sent."""
