"""`python -m ctxexp.testing NAME [key=value ...]`: the same as `ctxexp conform`."""

import sys

from ctxexp.command.cli import run_command_line

sys.exit(run_command_line(["conform", *sys.argv[1:]]))
