"""Files and paths: atomic writing, checked reading."""
