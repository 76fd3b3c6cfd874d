"""`ctxexp conform NAME [key=value ...]`: the conformance kit on a registered name.

A law is a requirement of a contract. Exit status 0: every law holds; 1: some are broken; 2: an error, so that they
can't be checked.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal, cast, get_args, get_origin

from omegaconf import OmegaConf

from ctxexp import testing
from ctxexp.command.config import Component, component_of
from ctxexp.command.names import plugin_files
from ctxexp.dataset import Corpus
from ctxexp.errors import ConformanceError, DataError, line
from ctxexp.files.credentials import mask, refuse_clear
from ctxexp.plugins import build_registry
from ctxexp.plugins.types import convert_value
from ctxexp.testing.encoder_names import neighbour_values
from ctxexp.testing.options import find_option

FIXED = ("device", "weights")  # arguments that the kit doesn't vary: where it runs, and which files there must be


def main(name: str, values: Mapping[str, object]) -> int:
    """Check the name and print the report."""
    try:
        print(mask(conform(name, values)))
    except ConformanceError as error:
        print(mask(str(error)))  # a sink's errors may quote its key
        return 1
    return 0


def conform(name: str, values: Mapping[str, object]) -> str:
    """The report of a registered name under these arguments, as text; raises ConformanceError if a law is broken."""
    component = _component_of_name(name, values)
    title = mask(f"{component.kind} {component.name}" + "".join(f" {k}={v}" for k, v in component.arguments.items()))
    title += f" of {component.source}" if component.source else ""
    files = values.get("plugins") or [str(file) for file in plugin_files()]
    values = {**component.arguments, **values, "plugins": files}
    again = partial(_fingerprint_in_subprocess, f"{component.kind}/{component.name}", json.dumps(values))
    checks: dict[str, Callable[..., testing.Report]] = {
        "model": partial(
            testing.check_encoder, others=dict(_variants(component)), neighbours=dict(_neighbours(component))
        ),
        "metric": testing.check_metric,
        "transform": testing.check_transform,
        "dataset": partial(testing.check_dataset, elsewhere=again),
        "baseline": testing.check_baseline,
        "control": testing.check_control,
        "engine": testing.check_engine,
        "sink": testing.check_sink,
    }
    return str(checks[component.kind](component.make, name=title))


def _component_of_name(name: str, values: Mapping[str, object]) -> Component:
    """The configured plugin of that name, after loading the files in `values["plugins"]`; other values are its
    arguments."""
    files = values.get("plugins") or [str(file) for file in plugin_files()]  # these stood before the verb
    files = [files] if isinstance(files, str) else files
    paths = cast(list[str], convert_value("plugins", files, list[str]))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "plugin", UserWarning)
        registry = build_registry(files=[Path(path) for path in paths])
    for broken in registry.broken:
        print(f"warning: {line(broken)}", file=sys.stderr)
    kind, node = find_option(registry, name)
    arguments = {key: value for key, value in values.items() if key != "plugins"}
    secrets = registry.find(kind, str(node["name"])).secrets if kind == "sink" else ()
    refuse_clear([f"sink.{key}={value}" for key, value in arguments.items()], secrets)
    resolved = cast(dict[str, object], OmegaConf.to_container(OmegaConf.create(arguments), resolve=True))
    return component_of(kind, kind, {**node, **resolved}, registry)


def _fingerprint_in_subprocess(name: str, values: str) -> str:
    """The fingerprint of the data set in a process with another hash seed, so that sets iterate in another order;
    `values` is JSON."""
    code = "import sys; from ctxexp.testing.by_name import fingerprint; print(fingerprint(*sys.argv[1:]))"
    env = {**os.environ, "PYTHONHASHSEED": "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"}
    done = subprocess.run([sys.executable, "-c", code, name, values], env=env, capture_output=True, text=True)
    if done.returncode:
        raise DataError(f"another process can't build it: {' '.join(done.stderr.strip().splitlines()[-1:])}")
    return done.stdout.strip()


def fingerprint(name: str, values: str) -> str:
    """The fingerprint of the data set of this name, with these arguments as JSON."""
    corpus: Corpus = _component_of_name(name, json.loads(values)).make()
    return corpus.fingerprint


def _variants(component: Component) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Factories of the model with one argument changed, for each choice of each argument."""
    for key, (kind, default) in (component.signature() or {}).items():
        choices = (False, True) if kind is bool else get_args(kind) if get_origin(kind) is Literal else ()
        for choice in choices:
            if key not in FIXED and choice != component.arguments.get(key, default):
                yield f"{key}={choice}", partial(component.make, **{key: choice})


def _neighbours(component: Component) -> Iterator[tuple[str, dict[str, Callable[[], Any]]]]:
    """Each argument of the model that has no list of choices, with builders that give it a value beside its own."""
    for key, (kind, default) in (component.signature() or {}).items():
        if key not in FIXED and kind is not bool and get_origin(kind) is not Literal:
            values = neighbour_values(key, component.arguments.get(key, default))
            yield key, {f"{key}={value}": partial(component.make, **{key: value}) for value in values}
