"""The verbs of the command: `ctxexp NAME ...`, beside Hydra's experiments; `ctxexp plugins` lists what is installed."""

from __future__ import annotations

import inspect
import json
import os
import textwrap
import warnings
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

from ctxexp.command.cli import run_or_help
from ctxexp.command.help import ConfigKey, columns, config_keys, option_keys, option_names, summary_of
from ctxexp.datasets.downloads import vector_folder
from ctxexp.errors import TrackingError
from ctxexp.files import user_path
from ctxexp.files.code_version import __version__
from ctxexp.files.credentials import VARIABLE
from ctxexp.models.choices import cached_models, registered_models
from ctxexp.plugins import Register, hookimpl
from ctxexp.plugins.hookspecs import ALL_KINDS, COMMAND, CONFIG_KINDS
from ctxexp.plugins.offers import Offer, PluginVersion, arguments, type_text, value_text
from ctxexp.plugins.registry import GROUPS, Registry, load_plugin_files, registry
from ctxexp.progress import show, terminal_width
from ctxexp.sinks.mlflow.database import DATABASE, is_intact, point_to, prepare, sqlite_file, sqlite_path, sqlite_uri
from ctxexp.sinks.mlflow.ui import serve
from ctxexp.vectors.cache import clear, entries, size_text

KINDS = {"shards": "shards of encoding that was stopped", "sums": "sums of one pass"}  # what isn't vectors


def run(*args: str) -> int:
    """Measure: one run, or a sweep with -m; `run` may be left out.

    example: ctxexp run bert sentences.txt
    """
    return run_or_help(list(args))


def ui(
    *,
    folder: Path = Path("mlruns"),
    uri: str | None = None,
    experiment: str | None = None,
    port: int = 5000,
    moved: bool = False,
) -> None:
    """Start MLflow's page, and print the link to the last charts.

    folder: the tracking folder
    uri: a tracking store other than the folder's SQLite
    experiment: MLflow's experiment; null: MLFLOW_EXPERIMENT_NAME, else ctxexp
    port: the first port to try
    moved: point the store's own runs to their files in this folder first, which was moved since
    example: ctxexp ui
    """
    _require_store(folder, uri)
    if moved:
        store = sqlite_file(uri or os.environ.get(VARIABLE) or sqlite_uri(user_path(folder).resolve() / DATABASE))
        if store is None:
            raise TrackingError("moved=true is for a SQLite store: a server says itself where files are")
        show(f"{point_to(store, folder)} runs point to their files in {folder} now")
    serve(prepare(folder, uri), experiment, port)


def _require_store(folder: Path, uri: str | None) -> None:
    """Raise TrackingError where `prepare` would make a new, empty store: there is nothing to look at in it."""
    uri = uri or os.environ.get(VARIABLE) or sqlite_uri(user_path(folder).resolve() / DATABASE)
    if uri.startswith("sqlite") and not is_intact(path := sqlite_path(uri)):
        raise TrackingError(f"no tracking store at {path}; name the folder that your runs are in with folder=")


def report(*, folder: Path = Path("mlruns"), sweep: str = "last", out: Path = Path("report")) -> None:
    """Make a sweep's interactive page, figures and tables anew, from its results on disk.

    folder: the tracking folder
    sweep: a folder's name in its results, or last
    out: where to
    example: ctxexp report sweep=last
    """
    from ctxexp.jobs.job import finished_by_label
    from ctxexp.report.comparison import write_summary

    finished = list(finished_by_label(folder, sweep=sweep).items())[::-1]  # the first job first
    links = {label: str(job.state.get("link") or "") for label, (job, _) in finished}
    results_by_label = [(label, results) for label, (_, results) in finished]
    for path in write_summary(results_by_label, out, registry(), links=links):
        print(path)


def cache(
    action: Literal["show", "clear"] = "show",
    *,
    folder: Path | None = None,
    key: str | None = None,
    older_than: float | None = None,
) -> None:
    """Show or clear the cached vectors, with shards of encoding that was stopped and sums of one pass.

    action: what to do with them
    folder: where they are; null: `ctxexp/vectors` in the user's cache folder (or CTXEXP_CACHE)
    key: clear this entry only
    older_than: clear what was not used for so many days
    example: ctxexp cache clear older_than=30
    """
    folder = folder or vector_folder()
    if action == "show":
        cache_entries = entries(folder)
        for entry in cache_entries:
            kind = "" if entry.kind == "vectors" else f"  ({KINDS[entry.kind]})"
            print(f"{entry.key}  {size_text(entry.n_bytes):>9}  {entry.corpus}  {entry.encoder}{kind}")
        print(f"{len(cache_entries)} entries, {size_text(sum(e.n_bytes for e in cache_entries))} in {folder}")
    else:
        gone = clear(folder, key=key, older_than_days=older_than)
        print(f"removed {len(gone)} entries, {size_text(sum(e.n_bytes for e in gone))} from {folder}")


def upload(folder: Path, *folders: Path, uri: str | None = None, experiment: str | None = None) -> None:
    """Send results that are on disk to MLflow (after a server was away); what is there already is left alone.

    folder: a results folder, of a job or of a sweep
    folders: more of them
    uri: where to; null: where the run was meant to go
    experiment: MLflow's experiment; null: the run's own
    example: ctxexp upload mlruns/results/20261126-171123-9aae98
    """
    from ctxexp.sinks.mlflow.ui import upload as send

    for place in (folder, *folders):
        for sent in send(place, uri=uri, experiment=experiment):
            print(f"{sent.folder}: {'sent' if sent.is_new else 'there already'}, {sent.link}")


def models() -> None:
    """List the models that can be typed, and which are here.

    example: ctxexp models
    """
    offers = [registry().find("model", name) for name in registry().names("model")]
    rows = [*registered_models(offers), *cached_models()]
    width = max(len(row.typed) for row in rows)
    lines = []
    for row in rows:
        size = size_text(int(row.n_bytes)) if row.n_bytes else ""
        state = "" if row.is_here is None else "here" if row.is_here else "not here"
        lines.append((f"{row.typed:<{width}}  {size:>8}  {state:<8}", row.note))
    show(columns(lines))
    hint = "ctxexp NAME measures one; ctxexp OWNER/NAME, any other of the hub; ctxexp path/to/folder, one on disk."
    show("\n" + textwrap.fill(hint, terminal_width()))


def plugins(*files: Path, json: bool = False) -> int:
    """List what is installed, what each plugin offers, and what is broken.

    files: plugin files (FILE.py), listed too
    json: as JSON, with every group's options, the config's keys and the verbs, for scripts and assistants
    example: ctxexp plugins my_plugin.py
    """
    return list_plugins(list(files), as_json=json)


def conform(name: str, **arguments: Any) -> int:
    """Check what is registered, whatever its kind (model, metric, sink ...), against its contract.

    name: what it is registered as: bert, or with its kind, metric/anisotropy; or an option that is a YAML file
    arguments: of its config, as in pooling=first; plugins=[file.py] brings names from files
    example: ctxexp conform metric/anisotropy
    """
    from ctxexp.testing.by_name import main  # with the whole kit, which no other verb needs

    return main(name, arguments)


@hookimpl
def register_commands(register: Register) -> None:
    for verb in (run, ui, report, models, cache, upload, plugins, conform):
        register(verb.__name__, verb)


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
        lines.append(f"  {offer.usage:<36} {offer.summary}".rstrip())
        if offer.kind in CONFIG_KINDS and (keys := signature_text(offer)):
            lines.append(f"      {keys}")
    return "\n".join(lines)


def listing_dict(registry: Registry) -> dict[str, object]:
    """The listing as values of JSON types: groups with their options, the config's own keys, verbs and plugins."""
    verbs = {name: registry.find(COMMAND, name) for name in registry.names(COMMAND)}
    return {
        "version": __version__,
        "groups": {
            group: {
                name: {"about": summary_of(group, name), "keys": _keys(option_keys(group, name))}
                for name in option_names(group)
            }
            for group in GROUPS
        },
        "values": _keys(config_keys()),
        "verbs": {name: {"about": verb.summary, "arguments": signature_text(verb)} for name, verb in verbs.items()},
        "plugins": [
            asdict(source) | {"offers": [o.usage for o in registry.offers.values() if o.supplier == source]}
            for source in registry.sources
        ],
        "broken": registry.broken,
    }


def _keys(keys: Iterable[ConfigKey]) -> dict[str, dict[str, str]]:
    return {key.name: {"value": key.value, "about": key.comment} for key in keys}


def list_plugins(files: list[Path], *, as_json: bool = False) -> int:
    """Print the listing, as text or (`json=true`) as JSON; returns the exit status, 1 if an installed plugin is
    broken."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the listing has these warnings
        if files:
            load_plugin_files([str(file) for file in files])
        current = registry()
    if as_json:
        print(json.dumps(listing_dict(current), indent=1, ensure_ascii=False))
    else:
        show(listing(current))
    return 1 if current.broken else 0
