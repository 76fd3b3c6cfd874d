"""Secrets in addresses, and those that the environment holds, are used and never written."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest
from omegaconf import OmegaConf

from ctxexp.command.config import as_written
from ctxexp.errors import ConfigError, TrackingError
from ctxexp.files.credentials import mask, redact, refuse_clear, secrets_in
from ctxexp.files.environment import command
from ctxexp.sinks import database
from tests.memory_sink import MemorySink
from tests.tracked import run_of, tracked

RULE = (
    "a secret is given by the environment alone (${oc.env:NAME}, or a variable that MLflow or the hub knows, such as "
    "MLFLOW_TRACKING_PASSWORD or HF_TOKEN)"
)

ODD = "pa/ss@wo?rd#1"
PASSWORD = "MLFLOW_TRACKING_PASSWORD"


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)


@pytest.mark.parametrize(
    ("uri", "bare"),
    [
        ("http://me:secret@host:5000/x", "http://host:5000/x"),
        (f"http://me:{ODD}@host:5000", "http://host:5000"),
        ("https://token@host", "https://host"),
        ("postgresql+psycopg2://me:se/cr@et@host/db?sslmode=require", "postgresql+psycopg2://host/db?sslmode=require"),
        ("postgresql://host/db?user=me&password=secret&x=1", "postgresql://host/db?user=me&password=***&x=1"),
        ("https://host/a?sig=s1gn&x=1", "https://host/a?sig=***&x=1"),
        ("https://host/a?x-amz-credential=s&X-Amz-Signature=s", "https://host/a?x-amz-credential=***&X-Amz-Signature=***"),
        ("https://host/a#access_token=s1gn&state=1", "https://host/a#access_token=***&state=1"),
    ],
)  # fmt: skip
def test_an_address_is_shown_without_its_secrets_and_refused_where_it_is_typed(uri: str, bare: str) -> None:
    assert redact(uri) == bare
    assert secrets_in(uri)
    assert mask(f"no {uri} here") == f"no {bare} here"
    with pytest.raises(ConfigError, match=re.escape(f"dataset.path: {RULE}")):
        refuse_clear([f"dataset.path={uri}"])


@pytest.mark.parametrize(
    "uri",
    [
        "sqlite:////home/me@work/mlflow.db",
        "http://host:5000/x@v2",
        "https://host/a?author=me&design=2&keyword=x",
        "https://host/a#section-2",
        "http://me:${oc.env:PASSWORD}@host",
        "mail me@work",
    ],
)
def test_an_address_without_secrets_may_be_typed(uri: str) -> None:
    assert "$" in uri or redact(uri) == uri
    refuse_clear([f"dataset.path={uri}", uri])


@pytest.mark.parametrize(
    "word",
    [
        "sink.watch.pin=hunter22",
        "++sink.watch.api_key='hunter22'",
        "sink={watch:{name:watch,pin:hunter22}}",
        "model.token=hunter22",
        "--api-key=hunter22",
        "minilm token=hunter22",
        "sink.watch.pin=[hunter22]",
        "sink.watch.password=Bearer ${oc.env:X}",
    ],
)
def test_a_key_in_clear_is_refused_by_one_sentence(word: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(RULE)) as error:
        refuse_clear(["seed=1", word], ("pin",))
    assert "hunter22" not in str(error.value)


def test_what_refers_to_something_or_only_sounds_secret_may_be_typed() -> None:
    words = ["sink.watch.pin=${oc.env:PIN}", "sink.watch.pin='${oc.decode:${oc.env:PIN}}'", "sink.watch.api_key=null"]
    words += ["sink.watch.pin=['${oc.env:PIN}']", "sink.watch.max_tokens=5", "model.unk_token=[UNK]", "dataset.pin=x"]
    refuse_clear([*words, "words.tokenizer=english", "sink.watch.pin=", "max_characters_per_token=50"], ("pin",))


def test_an_address_gets_the_password_of_the_variable_back(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://me:secret@host:5000")
    for uri, own in ((None, "me:secret@host"), ("http://host:5000", "me:secret@host"), ("http://other:5000", "other")):
        assert database.store_uri(tmp_path, uri) == f"http://{own}:5000"
    monkeypatch.delenv("MLFLOW_TRACKING_URI")
    assert database.store_uri(tmp_path, None) == f"sqlite:///{tmp_path / 'mlflow.db'}"


def test_what_a_library_quotes_of_a_password_is_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://me:{quote(ODD, safe='')}@host")
    said = mask(f"Failed to reach http://me:{ODD}@host as me, {ODD}, by {quote(ODD, safe='')}")
    assert said == "Failed to reach http://host as me, ***, by ***"
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", "t0ken")
    assert mask("Bearer t0ken") == "Bearer ***"


FORMS = {
    "glued to a word": "key{}_v2".format,
    "Python": repr,
    "JSON": json.dumps,
    "a URL": quote,
    "a query": lambda secret: quote(secret, safe=""),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("secret", ["hunter22", 'hunter22$"/\\é  €x💥', "hunter22" * 20 + " &<q>%q"])
def test_a_secret_is_masked_in_every_form(
    secret: str, form: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PASSWORD, secret)
    masked = mask(form(secret))
    assert "***" in masked
    assert "hunt" not in masked


def test_a_short_secret_is_masked_as_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PASSWORD, "layer")
    monkeypatch.setenv("HF_TOKEN", "no")
    assert mask("no layers: 'layer', layer_1") == "no layers: '***', layer_1"


def test_the_command_is_noted_without_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["ctxexp", "-m", f"sink.mlflow.uri=http://me:{ODD}@host", "model=bert"])
    said = command()
    assert said.startswith("ctxexp -m ")
    assert "http://host" in said
    assert "wo?rd" not in said


def test_what_the_environment_holds_is_logged_as_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "hunter22")
    config = OmegaConf.create({"a": "${oc.env:TOKEN}", "b": {"c": ["x/${a}"], "d": "${seed}"}, "seed": 1, "hydra": 2})
    assert as_written(config) == {"a": "${oc.env:TOKEN}", "b": {"c": ["x/${oc.env:TOKEN}"], "d": 1}, "seed": 1}
    assert config.a == "hunter22"  # used as ever


def test_a_job_writes_no_secret_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uri = f"http://me:{ODD}@host"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    sink = MemorySink()
    run = run_of(tmp_path, tmp_path, params={"at": uri}, config=f"uri: {uri}\n")
    with pytest.raises(ZeroDivisionError), tracked(run, overrides=[uri], memory=sink):
        raise ZeroDivisionError(f"cannot reach {uri} with {ODD}")
    assert json.loads((tmp_path / "run.json").read_text())["params"] == {"at": "http://host"}
    assert sink.run
    assert sink.run.status == "FAILED"
    for path in tmp_path.rglob("*"):
        assert ODD not in path.read_text(), path
    assert ODD not in str(vars(sink))


@pytest.mark.parametrize(
    ("password", "why"),
    [(ODD, "': in a user or a password write / @"), ("p[w", "': in a"), ("it's", " does not answer")],
)
def test_a_server_that_cannot_be_reached_is_named_without_its_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, password: str, why: str
) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    with pytest.raises(TrackingError) as error:
        database.prepare_store(tmp_path, f"http://me:{password}@127.0.0.1:9")
    assert f"http://127.0.0.1:9{why}" in str(error.value)
    assert not any(part in str(error.value) for part in (password, "wo?rd"))
    assert mask(str(error.value)) == str(error.value)
