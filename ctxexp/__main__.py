"""`python -m ctxexp`."""

import sys

try:
    from ctxexp.command.cli import main
except KeyboardInterrupt:  # while modules are loaded
    sys.exit(130)

if __name__ == "__main__":
    main()
