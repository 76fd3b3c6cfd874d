"""`python -m ctxexp`."""

from ctxexp.command.cli import main

if __name__ == "__main__":
    main()
