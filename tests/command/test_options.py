"""Python composes a config from the options' files by itself: it is the one that Hydra composes for the command."""

from __future__ import annotations

import pytest
from hydra import compose as hydra_compose

from ctxexp.command import compose
from ctxexp.command.config import plain_values
from ctxexp.command.options import find_option, plain_config
from ctxexp.command.overrides import read_choices
from ctxexp.plugins.registry import GROUPS, LISTS, option_names

BEGINNING = {  # by group, those options that begin with others or choose of other groups
    group: [name for name in option_names(group) if (option := find_option(group, name)) and option.defaults]
    for group in GROUPS
}
SEVERAL = ["experiment=ethayarajh_2019 model=gpt2", "metric=[self_similarity,anisotropy] weights=untrained seed=3"]


@pytest.mark.parametrize("group", [*filter(BEGINNING.get, GROUPS), "several"])
def test_python_composes_what_the_command_composes(group: str) -> None:
    form = f"{group}=[{{}}]" if group in LISTS else f"{group}={{}}"
    words = map(form.format, BEGINNING[group]) if group in GROUPS else SEVERAL
    compose.prepare()
    with compose.hydra_configs():
        for line in words:
            by_hydra = plain_values(hydra_compose("ctxexp", overrides=line.split()))
            assert plain_config(read_choices(line.split())) == by_hydra, line
