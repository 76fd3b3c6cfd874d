"""`ctxexp conform NAME [key=value ...]`: the conformance kit on an option of the config, with its arguments."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Literal, get_args, get_origin

from ctxexp.command.config import Component, parse_config
from ctxexp.command.options import find_option, plain_config
from ctxexp.dataset import Corpus
from ctxexp.errors import ConfigError, DataError, suggestions
from ctxexp.files.credentials import mask
from ctxexp.plugins import CONFIG_KINDS
from ctxexp.plugins.registry import LISTS, load_plugin_files, option_names, plugin_files, registry
from ctxexp.testing import check

FIXED = ("device", "weights")  # arguments that the kit doesn't vary: where it runs, and which files there must be


def conform(name: str, values: Mapping[str, object]) -> str:
    """The report of an option under these arguments, as text; raises ConformanceError if a law is broken."""
    component = component_of_option(name, values)
    typed = "".join(f" {key}={value}" for key, value in values.items() if key != "plugins")
    title = mask(f"{component.kind} {name.removeprefix(f'{component.kind}/')}{typed}")
    title += f" of {component.offer.supplier}" if component.offer.supplier else ""
    again = partial(_fingerprint_elsewhere, name, {"plugins": [*map(str, plugin_files())], **values})
    more: dict[str, object] = {}
    if component.kind == "model":
        more["others"] = dict(_variants(component))
    elif component.kind == "dataset":
        more["elsewhere"] = again
    return str(check(component.kind, component.make, name=title, **more))


def component_of_option(name: str, values: Mapping[str, object]) -> Component:
    """The part that a config with this option holds. Of the `values`, `plugins` are files, loaded first; the others are
    its arguments."""
    if files := values.get("plugins"):
        load_plugin_files([files] if isinstance(files, str) else files)
    kind, name = kind_and_option(name)
    option = find_option(kind, name)
    package = option.package if option else kind
    arguments = {f"{package}.{key}": value for key, value in values.items() if key != "plugins"}
    part = getattr(parse_config(plain_config({kind: name, **arguments}), registry()), kind)
    return next(iter(part.values())) if kind in LISTS else part


def kind_and_option(name: str) -> tuple[str, str]:
    """The kind and the option that `KIND/NAME` or `NAME` stands for. Raises ConfigError for none, or several."""
    options = [(kind, option) for kind in CONFIG_KINDS for option in option_names(kind)]
    hits = [(kind, option) for kind, option in options if name in (option, f"{kind}/{option}")]
    if len(hits) > 1:
        raise ConfigError(f"{name!r} is the name of several things; say {' or '.join(map('/'.join, hits))}")
    if not hits:
        close = suggestions(name, [known for kind, option in options for known in (option, f"{kind}/{option}")])
        hint = f"did you mean {' or '.join(map(repr, close))}? " if close else ""
        raise ConfigError(f"no name {name!r}; {hint}ctxexp --help lists those of each kind ({', '.join(CONFIG_KINDS)})")
    return hits[0]


def _fingerprint_elsewhere(name: str, values: Mapping[str, object]) -> str:
    """The fingerprint of the data set in a process with another hash seed, so that sets iterate in another order."""
    code = "import sys; from ctxexp.testing.by_name import fingerprint; print(fingerprint(*sys.argv[1:]))"
    env = {**os.environ, "PYTHONHASHSEED": "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"}
    words = [sys.executable, "-c", code, name, json.dumps(values)]
    done = subprocess.run(words, env=env, capture_output=True, text=True)
    if done.returncode:
        raise DataError(f"another process can't build it: {' '.join(done.stderr.strip().splitlines()[-1:])}")
    return done.stdout.strip().splitlines()[-1]


def fingerprint(name: str, values: str) -> str:
    """The fingerprint of the data set of this option, with these arguments as JSON."""
    corpus: Corpus = component_of_option(name, json.loads(values)).make()
    return corpus.fingerprint


def _variants(component: Component) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Factories of the model with one argument changed, for each choice of each argument."""
    for key, (kind, default) in (component.signature() or {}).items():
        choices: tuple[object, ...] = (False, True) if kind is bool else ()
        if get_origin(kind) is Literal:
            choices = get_args(kind)
        for choice in choices:
            if key not in FIXED and choice != component.arguments.get(key, default):
                yield f"{key}={choice}", partial(component.make, **{key: choice})
