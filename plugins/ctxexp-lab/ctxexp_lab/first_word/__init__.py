"""The first position of a text: every measure under each condition of what stands first, in one figure and table."""
