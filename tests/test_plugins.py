"""The registry: first-party names come through the hooks, a stranger's mistake is named and the rest goes on."""

from __future__ import annotations

from typing import Any

import pytest

from ctxexp.errors import PluginError, UnknownName
from ctxexp.plugins import Offer, Register, Registry, build_registry, hookimpl


class Good:
    @hookimpl
    def register_models(self, register: Register) -> None:
        register("theirs", lambda *, path: path)

    @hookimpl
    def config_folders(self) -> str:
        return "/somewhere"


def test_every_first_party_name_is_there() -> None:
    registry = build_registry(installed=False)
    assert {"bert", "gpt2", "elmo", "huggingface"} <= set(registry.names("model"))
    assert {"polysemy", "sts_2012_2016", "sts_b", "sick_r", "text"} <= set(registry.names("dataset"))
    assert {"self_similarity", "intra_sentence_similarity", "max_explainable_variance", "anisotropy"} <= set(
        registry.names("metric")
    )
    assert "one_per_sentence" in registry.names("baseline")
    assert registry.broken == []


def test_an_extra_plugin_joins() -> None:
    registry = build_registry([("good", Good())], installed=False)
    assert registry.find("model", "theirs").factory(path="x") == "x"
    assert [s.plugin for s in registry.sources] == ["good"]
    assert registry.folders == ["/somewhere"]


def test_unknown_names_list_their_neighbours() -> None:
    registry = build_registry(installed=False)
    with pytest.raises(UnknownName, match=r"no model 'gpt-2'; did you mean 'gpt2'\? \(bert, elmo, gpt2, huggingface\)"):
        registry.find("model", "gpt-2")


def _plugin(**functions: Any) -> object:
    return type("Bad", (), {name: hookimpl(f) for name, f in functions.items()})()


def test_a_broken_plugin_is_named_and_leaves_nothing_behind() -> None:
    def taken(self: object, register: Register) -> None:
        register("new", print)
        register("bert", print)

    def wrong_argument(self: object, registrar: Register) -> None: ...

    def unknown_hook(self: object, register: Register) -> None: ...

    def no_factory(self: object, register: Register) -> None:
        register("x", "not callable")  # type: ignore[arg-type]

    def raises(self: object, register: Register) -> None:
        raise ValueError("boom")

    plugins = [
        ("taken", _plugin(register_models=taken)),
        ("argument", _plugin(register_models=wrong_argument)),
        ("hook", _plugin(register_modles=unknown_hook)),
        ("callable", _plugin(register_metrics=no_factory)),
        ("raising", _plugin(register_datasets=raises)),
        ("good", Good()),
    ]
    with pytest.warns(UserWarning, match="plugin"):
        registry = build_registry(plugins, installed=False)
    report = "\n".join(registry.broken)
    assert "registers model 'bert', which plugin 'ctxexp.models' already supplies; rename one of them" in report
    assert "registrar" in report  # the argument that the hook doesn't have
    assert "expected a callable factory, got str" in report
    assert "ValueError: boom" in report
    assert "register_modles" in report  # no such hook
    assert len(registry.broken) == 5
    assert "new" not in registry.names("model")
    assert "theirs" in registry.names("model")


def test_a_name_has_one_owner() -> None:
    registry = Registry()
    registry.add(Offer("model", "a", print, "first"))
    with pytest.raises(PluginError, match="plugin 'second' registers model 'a', which plugin 'first' already supplies"):
        registry.add(Offer("model", "a", print, "second"))
