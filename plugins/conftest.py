"""Plugins' tests have a thread each, as ctxexp's own have where these are collected too."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
