"""`python -m ctxexp`."""

from ctxexp.cli import main

if __name__ == "__main__":
    main()
