"""Published figures and the tables that lay ours beside them: a folder a paper or study."""
