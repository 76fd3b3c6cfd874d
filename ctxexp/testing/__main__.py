"""`python -m ctxexp.testing NAME [key=value ...]`: the same as `ctxexp conform`."""

import sys

from ctxexp.command.cli import command

sys.exit(command(["conform", *sys.argv[1:]]))
