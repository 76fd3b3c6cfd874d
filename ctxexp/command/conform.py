"""`ctxexp conform NAME [key=value ...]`: the conformance kit on a registered name.

Exit status 0: every law holds; 1: some are broken; 2: it can't be checked.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from ctxexp.command.config import Node, build, check_node
from ctxexp.command.types import typed
from ctxexp.dataset import Corpus
from ctxexp.errors import ConfigError, ConformanceError, DataError, UnknownName
from ctxexp.plugins import KINDS, Offer, Registry, arguments, build_registry

FIXED = ("device", "weights")  # arguments that the kit doesn't vary: where it runs, and which files there must be


def main(name: str, values: Node) -> int:
    """Check the name and print the report."""
    try:
        print(conform(name, values))
    except ConformanceError as error:
        print(error)
        return 1
    return 0


def conform(name: str, values: Node) -> str:
    """The report of a registered name under these arguments, as text; raises ConformanceError if a law is broken."""
    from ctxexp import testing

    registry, offer, given = _asked(name, values)
    values = {key: value for key, value in given.items() if key != "plugins"}
    check_node(offer.kind, offer.kind, {"name": offer.name, **values}, registry)
    source = registry.source(offer.kind, offer.name)
    title = f"{offer.kind} {offer.name}" + "".join(f" {k}={v}" for k, v in values.items())
    title += f" of {source}" if source else ""
    make = partial(_build, registry, offer, values)
    again = f"{offer.kind}/{offer.name}", json.dumps(given)
    checks: dict[str, Callable[..., testing.Report]] = {
        "model": partial(testing.check_encoder, others=dict(_others(registry, offer, values))),
        "metric": testing.check_metric,
        "transform": testing.check_transform,
        "dataset": partial(testing.check_dataset, elsewhere=partial(_elsewhere, *again)),
        "baseline": testing.check_baseline,
        "control": testing.check_control,
        "sink": testing.check_sink,
    }
    return str(checks[offer.kind](make, name=title))


def _asked(name: str, values: Node) -> tuple[Registry, Offer, Node]:
    """The registry with the files that `values` names, what `name` means in it, and the values."""
    files = values.get("plugins") or []
    files = [files] if isinstance(files, str) else files
    typed("plugins", files, list[str])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "plugin", UserWarning)
        registry = build_registry(files=[Path(file) for file in files])
    for broken in registry.broken:
        print(f"warning: {' '.join(broken.split())}", file=sys.stderr)
    return registry, _find(registry, name), values


def _elsewhere(name: str, values: str) -> str:
    """The fingerprint of the data set in a process whose sets have another order; `values` is JSON."""
    code = "import sys; from ctxexp.command.conform import fingerprint; print(fingerprint(*sys.argv[1:]))"
    env = {**os.environ, "PYTHONHASHSEED": "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"}
    done = subprocess.run([sys.executable, "-c", code, name, values], env=env, capture_output=True, text=True)
    if done.returncode:
        raise DataError(f"another process can't build it: {' '.join(done.stderr.strip().splitlines()[-1:])}")
    return done.stdout.strip()


def fingerprint(name: str, values: str) -> str:
    """The fingerprint of the data set of this name, with these arguments as JSON."""
    registry, offer, given = _asked(name, json.loads(values))
    corpus: Corpus = _build(registry, offer, {key: value for key, value in given.items() if key != "plugins"})
    return corpus.fingerprint


def _build(registry: Registry, offer: Offer, values: Node) -> Any:
    with registry.credit(offer.kind, offer.name):
        return build(offer.kind, {"name": offer.name, **values}, registry)


def _others(registry: Registry, offer: Offer, values: Node) -> Iterator[tuple[str, Any]]:
    """How to build the model with each choice of each argument, one at a time."""
    for key, (kind, default) in (arguments(offer.factory) or {}).items():
        choices = (False, True) if kind is bool else get_args(kind) if get_origin(kind) is Literal else ()
        for choice in choices:
            if key not in FIXED and choice != values.get(key, default):
                yield f"{key}={choice}", partial(_build, registry, offer, {**values, key: choice})


def _find(registry: Registry, name: str) -> Offer:
    kind, _, bare = name.rpartition("/")
    if kind:
        if kind not in KINDS:
            raise UnknownName("kind", kind, KINDS)
        return registry.find(kind, bare)
    found = [offer for offer in registry.offers.values() if offer.kind in KINDS and offer.name == name]
    if not found:
        raise UnknownName("name", name, {known for kind in KINDS for known in registry.names(kind)})
    if len(found) > 1:
        both = " or ".join(f"{offer.kind}/{name}" for offer in found)
        raise ConfigError(f"{name!r} is the name of several things; say {both}")
    return found[0]
