"""The verbs of the command: what `ctxexp NAME ...` does beside Hydra's experiments. Imports are inside."""

from __future__ import annotations

import argparse
import os

from ctxexp.datasets.download import cache_folder
from ctxexp.errors import TrackingError
from ctxexp.files.paths import user_path
from ctxexp.plugins import Register, hookimpl


def run(argv: list[str]) -> int:
    """Measure: one run, or a sweep with -m; the word `run` may be left out."""
    from ctxexp.command.cli import experiment

    return experiment(argv)


def ui(argv: list[str]) -> int:
    """Start MLflow's page and print the link to the last sweep's charts."""
    parser = argparse.ArgumentParser(prog="ctxexp ui", description=ui.__doc__)
    parser.add_argument("--folder", default="mlruns", help="the tracking folder (default: mlruns)")
    parser.add_argument("--uri", help="a tracking store other than the folder's SQLite")
    parser.add_argument("--experiment", default="ctxexp", help="MLflow's experiment (default: ctxexp)")
    parser.add_argument("--port", type=int, default=5000, help="the first port to try (default: 5000)")
    asked = parser.parse_args(argv)
    from ctxexp.sinks.mlflow import prepare, serve

    _require_store(asked.folder, asked.uri)
    serve(prepare(asked.folder, asked.uri), asked.experiment, asked.port)
    return 0


def _require_store(folder: str, uri: str | None) -> None:
    """Raise TrackingError where `prepare` would make a new, empty store: there is nothing to look at in it."""
    from ctxexp.sinks.mlflow.credentials import VARIABLE
    from ctxexp.sinks.mlflow.database import DATABASE
    from ctxexp.sinks.mlflow.sqlite import sqlite_path, sqlite_uri, whole

    uri = uri or os.environ.get(VARIABLE) or sqlite_uri(user_path(folder).resolve() / DATABASE)
    if uri.startswith("sqlite") and not whole(path := sqlite_path(uri)):
        raise TrackingError(f"no tracking store at {path}; name the folder that your runs are in with --folder")


def report(argv: list[str]) -> int:
    """Make a sweep's interactive page, figures and tables anew, from its results on disk."""
    parser = argparse.ArgumentParser(prog="ctxexp report", description=report.__doc__)
    parser.add_argument("--folder", type=user_path, default="mlruns", help="the tracking folder (default: mlruns)")
    parser.add_argument("--sweep", default="last", help="a folder's name in its results (default: the last one)")
    parser.add_argument("--out", type=user_path, default="report", help="where to (default: report)")
    asked = parser.parse_args(argv)
    from ctxexp.command import compose
    from ctxexp.face import runs
    from ctxexp.report.page import summarise

    found = list(runs(asked.folder, sweep=asked.sweep).items())[::-1]  # the first job first
    for path in summarise(found, asked.out, compose.registry()):
        print(path)
    return 0


def cache(argv: list[str]) -> int:
    """Show or clear the cached vectors."""
    parser = argparse.ArgumentParser(prog="ctxexp cache", description=cache.__doc__)
    parser.add_argument("action", choices=["show", "clear"], nargs="?", default="show")
    parser.add_argument("--folder", type=user_path, default=cache_folder() / "vectors", help="default: %(default)s")
    parser.add_argument("--key", help="clear this entry only")
    parser.add_argument("--older-than", type=float, metavar="DAYS", help="clear what was not used for so long")
    asked = parser.parse_args(argv)
    from ctxexp.vectors.cache import clear, entries, size_text

    if asked.action == "show":
        held = entries(asked.folder)
        for entry in held:
            print(f"{entry.key}  {size_text(entry.n_bytes):>9}  {entry.corpus}  {entry.encoder}")
        print(f"{len(held)} entries, {size_text(sum(e.n_bytes for e in held))} in {asked.folder}")
    else:
        gone = clear(asked.folder, key=asked.key, older_than_days=asked.older_than)
        print(f"removed {len(gone)} entries, {size_text(sum(e.n_bytes for e in gone))} from {asked.folder}")
    return 0


def upload(argv: list[str]) -> int:
    """Send results that are on disk to MLflow (after a server was away); what is there already is left alone."""
    parser = argparse.ArgumentParser(prog="ctxexp upload", description=upload.__doc__)
    parser.add_argument("folders", nargs="+", type=user_path, help="results folders of jobs or of sweeps")
    parser.add_argument("--uri", help="where to (default: where the run was meant to go)")
    parser.add_argument("--experiment", help="MLflow's experiment (default: the run's own)")
    asked = parser.parse_args(argv)
    from ctxexp.sinks.mlflow import upload as send

    for folder in asked.folders:
        for sent in send(folder, uri=asked.uri, experiment=asked.experiment):
            print(f"{sent.folder}: {'there already' if sent.already else 'sent'}, {sent.link}")
    return 0


def plugins(argv: list[str]) -> int:
    """List what is installed, what each plugin offers, and what is broken; also of plugin files, if named."""
    parser = argparse.ArgumentParser(prog="ctxexp plugins", description=plugins.__doc__)
    parser.add_argument("files", nargs="*", type=user_path, metavar="FILE.py")
    files = parser.parse_args(argv).files
    from ctxexp.plugins.listing import main

    return main(files)


def conform(argv: list[str]) -> int:
    """Check a registered model, data set, transform, metric or baseline against its contract: NAME [key=value ...]."""
    from ctxexp.command.conform import main

    return main(argv)


@hookimpl
def register_commands(register: Register) -> None:
    for verb in (run, ui, report, cache, upload, plugins, conform):
        register(verb.__name__, verb)
