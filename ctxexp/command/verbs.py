"""The verbs of the command: `ctxexp NAME ...`, beside Hydra's experiments; `ctxexp plugins` lists what is installed."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

from ctxexp.command.help import columns, config_keys, option_keys, summary_of
from ctxexp.datasets import polysemy
from ctxexp.datasets.downloads import vector_folder
from ctxexp.errors import ConformanceError, TrackingError, UnknownName
from ctxexp.files import absent_folder, user_path
from ctxexp.files.code_version import __version__
from ctxexp.files.credentials import mask
from ctxexp.models.listing import cached_models, registered_models
from ctxexp.plugins import ALL_KINDS, COMMAND, CONFIG_KINDS
from ctxexp.plugins.arguments import arguments, type_text, value_text
from ctxexp.plugins.registry import (
    GROUPS,
    Offer,
    PluginVersion,
    Registry,
    load_plugin_files,
    offers_in_file,
    option_names,
    registry,
)
from ctxexp.progress import terminal_width
from ctxexp.report.page import REPORT, open_page
from ctxexp.report.terminal import Document, Table, answer
from ctxexp.sinks.database import has_database, prepare_store, sqlite_file, store_uri
from ctxexp.sinks.ui import serve
from ctxexp.vectors.cache import clear, entries, size_text

KINDS = {"shards": "shards of encoding that was stopped", "sums": "sums of one pass"}  # what isn't vectors


def run(*args: str) -> int:
    """Measure: one run, or a sweep with -m; `run` may be left out.

    example: ctxexp run bert sentences.txt
    """
    from ctxexp.command.application import run_experiment  # Hydra's

    return run_experiment(list(args))


def demo(*, word: str = "light", out: Path | None = None) -> Document:
    """Measure a small model on the embedded sentences, and open the page at one word; nothing is downloaded.

    word: one of the embedded sentences' ambiguous words, whose uses the page shows
    out: the folder for the page; null: ctxexp-demo
    example: ctxexp demo
    """
    from ctxexp.command.api import measure  # with what reads models

    text = polysemy()
    words = {sense.label.partition(".")[0] for sense in text.senses}
    if word not in words:
        raise UnknownName("ambiguous word", word, words)
    results = measure("bert", text, metrics=["contextuality", "self_similarity", "max_explainable_variance"])
    page = results.report((out or absent_folder(Path("ctxexp-demo"), "report")) / REPORT)
    open_page(page, word)
    said = answer([("bert", results)], terminal_width()).splitlines()
    hint = f"Move the page's slider over the layers: the uses of {word!r} part."
    return Document([*said, "", hint, "Of your own model: ctxexp MODEL sentences.txt --open"], files=[page])


def ui(
    *,
    folder: Path = Path("mlruns"),
    uri: str | None = None,
    experiment: str | None = None,
    port: int = 5000,
) -> None:
    """Start MLflow's page, and print the link to the last charts.

    folder: the tracking folder
    uri: a tracking store other than the folder's SQLite
    experiment: MLflow's experiment; null: MLFLOW_EXPERIMENT_NAME, else ctxexp
    port: the first port to try
    example: ctxexp ui
    """
    path = sqlite_file(store_uri(user_path(folder).resolve(), uri))
    if path and not has_database(path):  # `prepare_store` would make an empty one
        raise TrackingError(f"no tracking store at {path}; name the folder that your runs are in with folder=")
    serve(prepare_store(folder, uri), experiment, port)


def report(*, folder: Path = Path("mlruns"), sweep: str = "last", out: Path = Path("report")) -> Document:
    """Make a sweep's interactive page, figures and tables anew, from its results on disk.

    folder: the tracking folder, or that of a training's results by step (LayerCurves), which may go on
    sweep: a folder's name in its results, or last
    out: where to
    example: ctxexp report sweep=last
    """
    from ctxexp.jobs import finished_by_label
    from ctxexp.report.comparison import write_summary
    from ctxexp.results import Results

    steps = {int(path.parent.name[4:]): path.parent for path in folder.glob("step[0-9]*/results.json")}
    if steps:
        labelled = [(f"step {step}", Results.load(steps[step])) for step in sorted(steps)]
        return Document(files=write_summary(labelled, out, registry(), pictures=True))
    finished = list(finished_by_label(folder, sweep=sweep).items())[::-1]  # the first job first
    links = {label: str(job.state.get("link") or "") for label, (job, _) in finished}
    results_by_label = [(label, results) for label, (_, results) in finished]
    return Document(files=write_summary(results_by_label, out, registry(), links=links, pictures=True))


def cache(
    action: Literal["show", "clear"] = "show",
    *,
    folder: Path | None = None,
    key: str | None = None,
    older_than: float | None = None,
) -> Document:
    """Show or clear the cached vectors, with shards of encoding that was stopped and sums of one pass.

    action: what to do with them
    folder: where they are; null: `ctxexp/vectors` in the user's cache folder (or CTXEXP_CACHE)
    key: clear this entry only
    older_than: clear what was not used for so many days
    example: ctxexp cache clear older_than=30
    """
    folder = folder or vector_folder()
    found = entries(folder) if action == "show" else clear(folder, key=key, older_than_days=older_than)
    size = size_text(sum(one.n_bytes for one in found))
    lines = []
    for one in found if action == "show" else ():
        kind = "" if one.kind == "vectors" else f"  ({KINDS[one.kind]})"
        lines.append(f"{one.key}  {size_text(one.n_bytes):>9}  {one.corpus}  {one.encoder}{kind}")
    done = f"{len(found)} entries, {size} in" if action == "show" else f"removed {len(found)} entries, {size} from"
    return Document([*lines, f"{done} {folder}"], {"entries": _json_table("Entries of the cache", map(asdict, found))})


def upload(folder: Path, *folders: Path, uri: str | None = None, experiment: str | None = None) -> Document:
    """Send results that are on disk to MLflow (after a server was away); what is there already is left alone.

    folder: a results folder, of a job or of a sweep
    folders: more of them
    uri: where to; null: where the run was meant to go
    experiment: MLflow's experiment; null: the run's own
    example: ctxexp upload mlruns/results/20261126-171123-9aae98
    """
    from ctxexp.jobs.uploading import upload as send

    every = (one for place in (folder, *folders) for one in send(place, uri=uri, experiment=experiment))
    return Document([f"{one.folder}: {'sent' if one.is_new else 'there already'}, {one.link}" for one in every])


def models() -> Document:
    """List the models that can be typed, and which are here.

    example: ctxexp models
    """
    offers = [registry().find("model", name) for name in registry().names("model")]
    rows = [*registered_models(offers), *cached_models()]
    width = max(len(row.typed) for row in rows)
    lines = []
    for row in rows:
        size = size_text(int(row.n_bytes)) if row.n_bytes else ""
        state = {None: "", True: "here", False: "not here"}[row.is_here]
        lines.append((f"{row.typed:<{width}}  {size:>8}  {state:<8}", row.note))
    hint = "ctxexp NAME measures one; ctxexp OWNER/NAME, any other of the hub; ctxexp path/to/folder, one on disk."
    said = [*columns(lines).splitlines(), "", textwrap.fill(hint, terminal_width())]
    return Document(said, {"models": _json_table("Models", (row._asdict() for row in rows))})


def plugins(*files: Path) -> Document:
    """List what is installed, what each plugin offers, and what is broken.

    The exit status is 1 if an installed plugin is broken. With json=true: every group's options, their keys and the
    config's own, the verbs and the plugins, for scripts and assistants.

    files: plugin files (FILE.py), listed too
    example: ctxexp plugins my_plugin.py
    """
    if files:
        load_plugin_files([str(file) for file in files])
    current = registry()
    return Document(listing(current).splitlines(), listing_tables(current), status=int(bool(current.broken)))


def conform(name: str, **arguments: Any) -> Document:
    """Check what is registered, whatever its kind (model, metric, sink ...), against its contract.

    name: what it is registered as: bert, or with its kind, metric/anisotropy; an option that is a YAML file; or a
        plugin file, FILE.py: all that it offers
    arguments: of its config, as in pooling=first; plugins=[file.py] brings names from files
    example: ctxexp conform metric/anisotropy
    """
    from ctxexp.testing.by_name import conform as check  # with the whole kit, which no other verb needs

    names = [name]
    if name.endswith(".py"):
        names = [f"{one.kind}/{one.name}" for one in offers_in_file(name) if one.kind in CONFIG_KINDS]
    said, status = "", 0
    for one in names:
        try:
            said += check(one, arguments) + "\n"
        except ConformanceError as error:
            said, status = f"{said}{error}\n", 1
    return Document(mask(said).splitlines(), status=status)  # a sink's errors may quote its key


def listing(registry: Registry) -> str:
    """The listing as text, one section per plugin: distribution and version, then its offers, each with the first
    sentence of its docstring and its config keys."""
    own = [offer for offer in registry.offers.values() if offer.builtin]
    sections = [_section("ctxexp", __version__, own)]
    for source in registry.sources:
        offers = [o for o in registry.offers.values() if o.supplier == source]
        sections.append(_section(_title(source), source.version, offers))
    if registry.broken:
        sections.append("\n".join(["broken, and left out:", *(f"  {' '.join(b.split())}" for b in registry.broken)]))
    return "\n\n".join(sections)


def signature_text(offer: Offer) -> str:
    """The offer's config keys with types and defaults, as in `size: int = 3, path: str`."""
    if offer.problem:
        return ""
    parameters = arguments(offer.factory)
    if parameters is None:
        return "any"
    return ", ".join(
        f"{name}: {type_text(kind)}" + ("" if default is inspect.Parameter.empty else f" = {value_text(default)}")
        for name, (kind, default) in parameters.items()
    )


def _title(source: PluginVersion) -> str:
    return source.distribution if source.distribution == source.plugin else f"{source.plugin} ({source.distribution})"


def _section(title: str, version: str, offers: list[Offer]) -> str:
    lines = [f"{title} {version}"]
    for offer in sorted(offers, key=lambda o: ((*ALL_KINDS, o.kind).index(o.kind), o.name)):
        lines.append(f"  {offer.usage:<36} {offer.problem or offer.summary}".rstrip())
        if offer.kind in CONFIG_KINDS and (keys := signature_text(offer)):
            lines.append(f"      {keys}")
    return "\n".join(lines)


def listing_tables(registry: Registry) -> dict[str, Table]:
    """The listing as rows: options of the groups, keys of these and of the config itself, verbs, plugins, problems."""
    options = [(group, name) for group in GROUPS for name in option_names(group)]
    keys = [("", "", key) for key in config_keys()]
    keys += [(group, name, key) for group, name in options for key in option_keys(group, name)]
    verbs = {name: registry.find(COMMAND, name) for name in registry.names(COMMAND)}
    rows: dict[str, Iterable[Mapping[str, object]]] = {
        "options": ({"group": group, "name": name, "about": summary_of(group, name)} for group, name in options),
        "keys": (
            {"group": group, "name": name, "key": key.name, "value": key.value, "about": key.comment}
            for group, name, key in keys
        ),
        "verbs": (
            {"name": name, "about": verb.summary, "arguments": signature_text(verb)} for name, verb in verbs.items()
        ),
        "plugins": (
            asdict(source) | {"offers": [o.usage for o in registry.offers.values() if o.supplier == source]}
            for source in registry.sources
        ),
        "broken": ({"problem": problem} for problem in registry.broken),
    }
    return {name: _json_table(name, of_name) for name, of_name in rows.items()}


def _json_table(title: str, rows: Iterable[Mapping[str, object]]) -> Table:
    """A table of rows that json=true alone prints."""
    import pandas as pd

    return Table(title, pd.DataFrame(list(rows)))
