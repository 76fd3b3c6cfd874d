"""Files and paths: written whole or not at all, read as what they say they are."""
