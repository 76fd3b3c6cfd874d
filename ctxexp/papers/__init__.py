"""Published figures beside ours, and what a sweep makes of its runs: tables and figures that plugins bring."""
