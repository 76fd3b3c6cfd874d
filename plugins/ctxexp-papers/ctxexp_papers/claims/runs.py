"""Finished runs: from the results folders of a tracking folder, or from an MLflow store."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ctxexp import Results
from ctxexp.command import show
from ctxexp.errors import TrackingError
from ctxexp.jobs import finished_results
from ctxexp_papers.claims.source import LinkedResults


def on_disk(folder: Path) -> Iterator[LinkedResults]:
    """Finished jobs under `<folder>/results`, the newest first."""
    for job, results in finished_results(folder):
        if job.results == job.folder:  # what another job took over is there already
            yield results, str(job.state.get("link") or job.folder)


def in_mlflow(uri: str, experiment: str) -> Iterator[LinkedResults]:
    """Finished runs of an MLflow experiment, the newest first."""
    from ctxexp.files.credentials import redact
    from ctxexp.sinks import database
    from ctxexp.sinks.database import KIND, LOGGED, tracking_errors
    from ctxexp.sinks.views import run_link

    os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")  # one bar per file
    if (path := database.sqlite_file(uri)) and not path.exists():
        raise TrackingError(f"no tracking store at {path} (uri=)")
    client = database.client(uri)
    query = f"attributes.status = 'FINISHED' AND tags.`{KIND}` = 'job' AND tags.`{LOGGED}` = 'true'"
    with tracking_errors(f"cannot read the runs of {redact(uri)}"):
        group = client.get_experiment_by_name(experiment)
        if group is None:
            names = ", ".join(sorted(e.name for e in client.search_experiments()))
            raise TrackingError(f"no experiment {experiment!r} in {redact(uri)}; there are: {names} (experiment=)")
        token = None
        while True:
            page = client.search_runs(
                [group.experiment_id],
                query,
                max_results=1000,
                order_by=["attributes.start_time DESC"],
                page_token=token,
            )
            for run in page:
                try:
                    with (
                        tempfile.TemporaryDirectory() as folder,
                        tracking_errors(f"cannot fetch run {run.info.run_id}"),
                    ):
                        for item in client.list_artifacts(run.info.run_id):
                            if not item.is_dir:
                                client.download_artifacts(run.info.run_id, item.path, folder)
                        results = Results.load(Path(folder))
                except TrackingError as error:
                    show(f"warning: left out: {error}", sys.stderr)
                    continue
                yield results, run_link(uri, group.experiment_id, run.info.run_id)
            token = page.token
            if not token:
                return
