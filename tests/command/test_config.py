"""Every mistake in a config is one sentence that names the place, what was expected and what is near."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from annotated_types import Le

from ctxexp import Sink, controls
from ctxexp.command import compose
from ctxexp.command.config import Component, parse_config
from ctxexp.command.key import job_key
from ctxexp.command.names import config_folders
from ctxexp.errors import ConfigError, UnknownName
from ctxexp.plugins import CONFIG_KINDS, Offer, Registry, arguments
from ctxexp.plugins.offers import convert_value
from ctxexp.plugins.registry import GROUPS
from tests.shipped import Local


def toy(
    *, path: str, size: int = 3, rate: float = 0.5, mode: Literal["a", "b"] = "a", names: list[str] | None = None
) -> tuple[Any, ...]:
    """A factory with every kind of argument."""
    return path, size, rate, mode, names


class ToySink(Sink):
    def __init__(self, *, path: str) -> None:
        self.path = path


@pytest.fixture
def registry() -> Registry:
    registry = Registry()
    for kind in CONFIG_KINDS:
        if kind not in ("control", "engine", "sink"):  # these are built when a config is checked
            registry.add(Offer(kind, "toy", toy, "tests"))
    registry.add(Offer("sink", "toy", ToySink, "tests"))
    registry.add(Offer("engine", "local", Local, "tests"))
    controls.register_controls(lambda name, factory: registry.add(Offer("control", name, factory, "tests")))
    return registry


def valid() -> dict[str, Any]:
    node = {"name": "toy", "path": "x"}
    return {
        "model": dict(node),
        "dataset": dict(node),
        "transform": dict(node),
        "metric": {"toy": dict(node)},
        "baseline": dict(node),
        "control": {"name": "none"},
        "weights": {"name": "mini"},
        "experiment": None,
        "seed": 0,
        "device": "auto",
        "dtype": "float32",
        "batch_tokens": 2048,
        "min_contexts": 5,
        "bootstrap": 1000,
        "fit_on": "target",
        "sentence": {"pooling": "mean_words", "mixes": []},
        "resume": False,
        "words": {
            "tokenizer": "english",
            "lower": False,
            "fold_case": False,
            "punctuation": "drop",
            "deduplicate": True,
            "max_contexts": None,
            "max_sentences": 4096,
            "sample": None,
        },
        "cache": {"folder": None, "limit_gb": 20},
        "tracking": {"folder": "mlruns", "sweep": None},
        "sink": {},
        "engine": {"name": "local"},
        "figures": {"published": False, "explorer": 0},
        "plugins": [],
    }


def test_a_control_is_one(registry: Registry) -> None:
    registry.add(Offer("control", "toy", dict, "tests"))
    with pytest.raises(ConfigError, match="control 'toy': expected a Control, got dict"):
        parse_config({**valid(), "control": {"name": "toy"}}, registry).control.make()


def test_a_sink_is_one(registry: Registry) -> None:
    parse_config({**valid(), "sink": {"a": {"name": "toy", "path": "x"}}}, registry)
    registry.add(Offer("sink", "odd", dict, "tests"))
    with pytest.raises(ConfigError, match="sink 'odd': expected a Sink, got dict"):
        parse_config({**valid(), "sink": {"a": {"name": "odd"}}}, registry).sink["a"].make()
    with pytest.raises(ConfigError, match=r"sink: expected options by label, as in sink=\[NAME\] \(odd, toy\)"):
        parse_config({**valid(), "sink": "odd"}, registry)


def test_a_whole_config_passes_and_builds(registry: Registry) -> None:
    made = parse_config(valid(), registry)
    assert made.words.punctuation == "drop"
    assert made.model.make(rate=1) == ("x", 3, 1, "a", None)


def test_what_a_factory_refuses_names_it_once() -> None:
    def named(message: str) -> str:
        def factory() -> None:
            raise ConfigError(message)

        registry = Registry()
        registry.add(Offer("transform", "toy", factory, "tests"))
        with pytest.raises(ConfigError) as caught:
            Component("transform", "toy", {}, registry).make()
        return str(caught.value)

    assert named("k=-3: expected at least 1") == "transform 'toy': k=-3: expected at least 1"
    for message in ("transform.k=-3: expected at least 1", "toy: k=-3 is too few"):
        assert named(message) == message


def _put(config: dict[str, Any], dotted: str, value: Any) -> dict[str, Any]:
    *places, last = dotted.split(".")
    node = config
    for place in places:
        node = node[place]
    node[last] = value
    return config


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ("sead", 3, r"no config key 'sead'; did you mean 'seed'\?"),
        ("seed", "abc", r"seed='abc': expected int, got str"),
        ("seed", True, r"seed=True: expected int, got bool"),
        ("seed", -1, r"seed=-1: expected at least 0"),
        ("batch_tokens", 0, r"batch_tokens=0: expected at least 1"),
        ("min_contexts", 1, r"min_contexts=1: expected at least 2"),
        ("device", "gpu", r"device='gpu': no such choice; did you mean 'cpu'\? \(auto, cpu, cuda"),
        ("words.tokenizer", "spacy", r"words\.tokenizer='spacy': no such choice"),
        (
            "fit_on",
            "trian",
            r"fit_on='trian': no such choice; did you mean 'train'\? \(all, nli:<path>, target, train\)",
        ),
        ("fit_on", "nli:", r"fit_on='nli:': no such choice; did you mean 'nli:<path>'\?"),
        ("sentence.pooling", None, r"sentence\.pooling=None: expected str, got NoneType"),
        ("sentence.mixes", "last2", r"sentence\.mixes='last2': expected list, got str; .*: sentence\.mixes=\[last2\]$"),
        ("sentence.mixes", ["lats2"], r"sentence\.mixes: no mix 'lats2'; did you mean 'last2'\?"),
        ("words.lower", "yes", r"words\.lower='yes': expected bool, got str"),
        ("cache.limit_gb", "big", r"cache\.limit_gb='big': expected float \| auto \| null, got str"),
        (
            "plugins",
            "./a.py",
            r"plugins='\./a\.py': expected list\[str\], got str; .* even of one: plugins=\[\./a\.py\]$",
        ),
        ("transform.name", "centre", r"no transform 'centre'"),
        ("control", "none", r"control: expected one option, as in control=NAME \(alone, no_first, no_sinks, none, shu"),
        ("control.name", "shufled", r"no control 'shufled'; did you mean 'shuffled'\?"),
        ("control.first", 2, r"control 'none' has no argument 'first'"),
        ("control", {"name": "shuffled", "how": "words"}, r"control\.how='words': no such choice"),
        ("control", {"name": "no_first", "first": 0}, r"control no_first needs first of at least 1 place, got 0"),
        ("control", {"name": "no_sinks", "factor": 1}, r"control no_sinks needs a factor above 1, got 1"),
        ("model", ["a", "b"], r"model: expected one option, as in model=NAME \(toy\)"),
        ("model.name", "tyo", r"no model 'tyo'; did you mean 'toy'\? \(toy\)"),
        ("model.paht", "x", r"model 'toy' has no argument 'paht'; did you mean 'path'\?"),
        ("model.path", "???", r"model 'toy' needs model\.path=<str>"),
        ("model.names", "???", r"model 'toy' needs model\.names=<list\[str\]>$"),
        ("model.size", "three", r"model\.size='three': expected int, got str"),
        ("model.rate", "fast", r"model\.rate='fast': expected float, got str"),
        ("model.mode", "c", r"model\.mode='c': no such choice"),
        ("model.names", [1], r"model\.names=\[1\]: expected list\[str\] \| null, got list$"),
        ("model.names", {"a": 1}, r"model\.names=\{'a': 1\}: expected list\[str\] \| null, got dict$"),
        ("metric", {}, r"metric: expected at least one of toy"),
        ("metric.toy", "x", r"metric\.toy: expected a node with a name, got 'x'"),
        (
            "metric",
            {"../../x": {"name": "toy"}},
            r"metric\.'\.\./\.\./x': expected a name of letters, digits, _ and -",
        ),
        ("metric", {"a/b": {"name": "toy"}}, "expected a name of letters"),
        ("metric", {"a.b": {"name": "toy"}}, "expected a name of letters"),
        ("metric", {"": {"name": "toy"}}, "expected a name of letters"),
        ("metric.toy.size", 1.5, r"metric\.toy\.size=1\.5: expected int, got float"),
    ],
)
def test_each_mistake_has_its_sentence(registry: Registry, place: str, value: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_config(_put(valid(), place, value), registry).control.make()


def test_missing_pieces_are_named(registry: Registry) -> None:
    config = valid()
    del config["baseline"]["path"]
    with pytest.raises(ConfigError, match=r"baseline 'toy' needs baseline\.path=<str>"):
        parse_config(config, registry)
    config = valid()
    del config["dtype"]
    with pytest.raises(ConfigError, match="dtype is missing from the config"):
        parse_config(config, registry)


def test_types() -> None:
    assert isinstance(convert_value("x", 1, float), float)
    assert convert_value("x", [1, 2], tuple[int, ...]) == (1, 2)
    assert convert_value("x", None, int | None) is None
    assert convert_value("x", {"a": 1}, dict[str, int]) == {"a": 1}
    assert convert_value("x", "as it is", 5) == "as it is"
    with pytest.raises(ConfigError, match=r"x='1': expected int \| null, got str"):
        convert_value("x", "1", int | None)
    with pytest.raises(ConfigError, match=r"x=7: expected at most 5$"):
        convert_value("x", 7, Annotated[float | None, Le(5)])
    assert arguments(lambda **kw: kw) is None


def test_the_job_key_follows_the_numbers_and_nothing_else(registry: Registry) -> None:
    def having(place: str, value: Any) -> str:
        return job_key(parse_config(_put(valid(), place, value), registry), "f", "e", "1")

    whole = parse_config(valid(), registry)
    key = job_key(whole, "f", "e", "1")
    assert having("tracking.folder", "elsewhere") == having("resume", True) == key
    others = {having("seed", 1), having("words.lower", True), having("model.rate", 0.7), having("metric.toy.size", 4)}
    others |= {job_key(whole, *given) for given in (("g", "e", "1"), ("f", "e", "2"), ("f", "other weights", "1"))}
    assert len(others | {key}) == 8


# The real configs and the real registry.


def options() -> list[str]:
    return sorted(f"{p.parent.name}={p.stem}" for folder in config_folders() for p in folder.glob("*/*.yaml"))


@pytest.mark.parametrize("option", options())
def test_every_yaml_composes_and_checks(option: str) -> None:
    compose.prepare()
    group = option.partition("=")[0]
    if group not in GROUPS:  # a plugin's own, which its experiments add
        option = f"+{option}"
    needed = {
        "model=huggingface": ["model.checkpoint=x"],
        "model=word_vectors": ["model.path=x"],
        "model=vectors": ["model.path=x"],
        "dataset=vectors": ["dataset.path=x"],
        "dataset=text": ["dataset.path=x"],
        "dataset=qnli": ["dataset.path=x"],
        "dataset=tagged": ["dataset.path=x"],
        "dataset=huggingface": ["dataset.path=x"],
    }
    if option == "engine=ray":
        pytest.importorskip("ray", reason="Ray isn't installed: pip install 'ctxexp-scale[ray]'")
    compose.check_command([option, *needed.get(option, [])], multirun=False)


def test_every_argument_is_in_its_yaml() -> None:
    """A key that the YAML lacks can't be set without a `+`."""
    import yaml

    for folder in config_folders():
        for (kind, name), offer in compose.registry().offers.items():
            path = folder / kind / f"{name}.yaml"
            if path.is_file():
                written = set(yaml.safe_load(path.read_text())) - {"name", "defaults"}
                assert written == set(arguments(offer.factory) or ()), path


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["sed=3"], r"no config key 'sed'; did you mean 'seed'\?"),
        (["model=brt"], r"no model 'brt'; did you mean 'bert'\? \(bert, elmo, .*gpt2, huggingface, "),
        (["modle=bert"], r"no config (key|group) 'modle'; did you mean 'model'\?"),
        (["model.poolng=first"], r"no config key 'model\.poolng'; did you mean 'model\.pooling'"),
        (["+extra=1"], r"no config key 'extra'"),
        (
            ["transform=whitening", "transform.shrink=1"],
            r"no config key 'transform\.shrink'; did you mean 'transform\.shrinkage'\? \(transform=whitening: name, k",
        ),
        (
            ["transform=weighted_removal", "transform.weights=[a]"],
            r"transform\.weights=\['a'\]: expected list\[float\] \| null, got list$",
        ),
        (["seed=abc"], r"seed='abc': expected int, got str"),
        (["model=[bert,gpt2]"], r"a run has one model; sweep with -m model=bert,gpt2"),
        (["model=bert,gpt2"], r"model has several values; a sweep needs -m"),
        (["metric=[self_similarty]"], r"no metric 'self_similarty'; did you mean 'self_similarity'"),
        (["model=huggingface"], r"model 'huggingface' needs model\.checkpoint=<str>"),
        (["model.pooling=frist"], r"model\.pooling='frist': no such choice; did you mean 'first'\?"),
        (["model=elmo", "model.state=carried"], r"model\.state='carried': no such choice"),
        (["dtype=float64"], r"dtype='float64': no such choice"),
        (["sink.mlflow.exp=x"], r"no config key 'sink\.mlflow\.exp'; did you mean 'sink\.mlflow\.experiment'"),
        (["seed=="], r"Error parsing override 'seed=='"),
        (["hydra/launcher=joblb"], r"no hydra/launcher 'joblb'; did you mean 'joblib'\?"),
        (["hydra.rundir=x"], r"no config key 'hydra\.rundir'; .*--hydra-help"),
        (["model=null"], r"model=null: a run needs one \(bert, elmo"),
    ],
)
def test_a_command_line_is_checked_before_any_work(overrides: list[str], message: str) -> None:
    compose.prepare()
    with pytest.raises(ConfigError, match=message) as caught:
        compose.check_command(overrides, multirun=False)
    assert "\n" not in str(caught.value)


def test_every_job_of_a_sweep_is_checked_first() -> None:
    compose.prepare()
    with pytest.raises(ConfigError, match="no model 'brt'"):
        compose.check_command(["model=bert,brt"], multirun=True)
    with pytest.raises(UnknownName, match="no baseline"):
        compose.check_command(["baseline.name=b1k,nothing"], multirun=True)
    compose.check_command(["model=bert,gpt2,elmo", "seed=1,2"], multirun=True)
    of_files = "huggingface,word_vectors,vectors,sentence_transformer"
    compose.check_command([f"model=glob(*,exclude=[{of_files}])", "seed=range(1,3)"], multirun=True)


@pytest.mark.parametrize("metric", ["default", "self_similarity", "[anisotropy,word_norm]"])
def test_an_experiment_composes_with_any_metric(metric: str) -> None:
    compose.prepare()
    compose.check_command(["experiment=ethayarajh_2019", f"metric={metric}"], multirun=False)


def test_the_papers_protocol() -> None:
    config = compose.config_of(["experiment=ethayarajh_2019"])
    assert config.weights.name == "published"
    assert config.dataset.name == "sts_2012_2016"
    assert (config.baseline.name, config.baseline.arguments) == ("one_per_sentence", {"size": 1000, "redraws": 30})
    assert config.min_contexts == 5
    assert config.metric["intra_sentence_similarity"].arguments["sample"] == 500
    assert config.metric["max_explainable_variance_released"].arguments["definition"] == "released"
    for name in ("max_explainable_variance", "max_explainable_variance_released"):  # the paper's level, by name
        assert config.metric[name].arguments["baselines"] == ["run", "size_matched"]
    usual = compose.config_of([])
    assert usual.metric["max_explainable_variance"].arguments["baselines"] == ["size_matched"]


def test_the_config_folder_holds_the_groups() -> None:
    assert {p.name for p in Path(compose.config_folder()).iterdir() if p.is_dir()} == set(compose.GROUPS)
