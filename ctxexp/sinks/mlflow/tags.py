"""The tags by which runs are found in MLflow."""

from __future__ import annotations

from collections.abc import Mapping

from ctxexp.files.process import process_tags
from ctxexp.report.palette import colours
from ctxexp.sink import Run

# `kind` is job or summary; `key` names what was computed, for resume; `bundle` names the folder on disk, so that
# sending it twice makes one run; `logged` is set last: whoever sees it sees a whole run.
SWEEP, KEY, KIND, BUNDLE, LOGGED, ERROR = (f"ctxexp.{n}" for n in ("sweep", "job", "kind", "bundle", "logged", "error"))
COLOUR, NOTE = "mlflow.runColor", "mlflow.note.content"
VIEW = "mlflow.sharedViewState."  # of the experiment, with a sweep or a run behind it
OWN_NOTE = "ctxexp.note"  # of the experiment: the note that we wrote, and may write anew
MODEL = "ctxexp.model"  # of a LoggedModel: digest of what tells its vectors from others'
MAX_TAG = 8000

# MLflow's own columns User, Source and Version, which its client leaves empty.
_SOURCE = {
    "user": "mlflow.user",
    "command": "mlflow.source.name",
    "commit": "mlflow.source.git.commit",
    "dirty": "ctxexp.git_dirty",
}


def tags_of(run: Run) -> dict[str, str]:
    """The tags of a job's run."""
    colour = colours([run.name])[run.name]
    tags = {**source_tags(run.source), KIND: "job", KEY: run.key, BUNDLE: run.id, COLOUR: colour}
    return tags | ({SWEEP: run.sweep} if run.sweep else {})


def source_tags(source: Mapping[str, str]) -> dict[str, str]:
    """Tags for a run's user, command and commit, and for the process that sends it."""
    own = {_SOURCE[key]: value for key, value in source.items() if key in _SOURCE}
    return {"mlflow.source.type": "LOCAL", **process_tags(), **own}
