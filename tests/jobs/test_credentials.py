"""Credentials of a tracking URI, and what the environment holds, are used and never written."""

from __future__ import annotations

import html
import json
import shlex
import sys
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest
from omegaconf import OmegaConf

from ctxexp.command.secrets import as_written, hide
from ctxexp.errors import TrackingError, line
from ctxexp.jobs.credentials import FULL_URI, mask, redact, with_credentials
from ctxexp.jobs.environment import command
from ctxexp.jobs.job import job, new_run
from ctxexp.jobs.sinks import Sinks
from ctxexp.sinks.mlflow import database
from ctxexp.testing.sinks import MemorySink

ODD = "pa/ss@wo?rd#1"


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FULL_URI, "")
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)


@pytest.mark.parametrize(
    ("uri", "bare"),
    [
        ("http://me:secret@host:5000/x", "http://host:5000/x"),
        (f"http://me:{ODD}@host:5000", "http://host:5000"),
        ("https://token@host", "https://host"),
        ("postgresql+psycopg2://me:se/cr@et@host/db?sslmode=require", "postgresql+psycopg2://host/db?sslmode=require"),
        ("postgresql://host/db?user=me&password=secret&x=1", "postgresql://host/db?user=me&password=***&x=1"),
        ("sqlite:////home/me@work/mlflow.db", "sqlite:////home/me@work/mlflow.db"),
        ("http://host:5000", "http://host:5000"),
    ],
)
def test_a_uri_is_shown_without_its_credentials_and_found_again(uri: str, bare: str) -> None:
    assert redact(uri) == bare
    assert with_credentials(uri) == uri
    assert with_credentials(bare) == uri  # as in a worker, which inherits the environment


def test_a_uri_takes_the_credentials_of_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://me:secret@host:5000")
    assert with_credentials("http://host:5000") == "http://me:secret@host:5000"
    assert with_credentials("http://other:5000") == "http://other:5000"


def test_what_a_library_quotes_of_a_password_is_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    with_credentials(f"http://me:{quote(ODD, safe='')}@host")
    said = mask(f"Failed to parse http://me:{ODD}@host, port 'pa', host 'wo?rd#1@host', {quote(ODD, safe='')}; {ODD}")
    assert not any(part in said for part in (ODD, "wo?rd", quote(ODD, safe="")))
    assert mask("see http://host/x and mail me@work") == "see http://host/x and mail me@work"
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", "t0ken")
    assert mask("Bearer t0ken") == "Bearer ***"


FORMS: dict[str, Callable[[str], str]] = {
    "glued to a word": "key{}_v2".format,
    "Python": repr,
    "Python within Python": lambda secret: repr(repr(f'it\'s "{secret}"')),
    "ASCII": ascii,
    "bytes": lambda secret: repr(secret.encode()),
    "JSON": json.dumps,
    "JSON within JSON": lambda secret: json.dumps(json.dumps({"key": secret})),
    "folded": lambda secret: secret.replace(" ", "\n  "),
    "YAML and SQL": lambda secret: secret.replace("'", "''"),
    "HTML": html.escape,
    "a shell": shlex.quote,
    "a URL": quote,
    "a query": quote_plus,
    "lower-case hexadecimal": lambda secret: quote(secret, safe="").lower(),
    "one line": lambda secret: " ".join(secret.split()),
    "cut": lambda secret: line(secret, 7),
    "cut in one line": lambda secret: line(secret[:-1])[:-1] + "...",
    "cut Python": lambda secret: f"{secret!r}"[:-5] + "...",
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("secret", ["hunter22", "hunter22$'\"/\\é  €x\t💥", "hunter22" * 20 + "\n&<q>%q"])
def test_a_secret_is_masked_in_every_form(
    secret: str, form: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CTXEXP_SECRET_X", secret)
    masked = mask(form(secret))
    assert "***" in masked
    assert "hunt" not in masked


def test_a_short_secret_is_masked_as_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CTXEXP_SECRET_X", "layer")
    monkeypatch.setenv("CTXEXP_SECRET_Y", "no")
    assert mask("no layers: 'layer', layer_1") == "no layers: '***', layer_1"


@pytest.mark.parametrize("secret", ["\\" * 30 + "x", '"' * 30 + "x", " ' \\" * 30 + "x", "a \n" * 999])
def test_an_odd_secret_is_masked_in_a_moment(secret: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CTXEXP_SECRET_X", secret)
    start = time.process_time()
    for text in ("\\" * 20_000, '\\"' * 10_000, " " * 20_000, secret[:-1] * 200):
        mask(text)
    assert time.process_time() - start < 2


def test_the_command_is_noted_without_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["ctxexp", "-m", f"sink.mlflow.uri=http://me:{ODD} x@host", "model=bert"])
    assert command() == "ctxexp -m sink.mlflow.uri=http://host model=bert"


def test_what_the_environment_holds_is_logged_as_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "hunter22")
    config = OmegaConf.create({"a": "${oc.env:TOKEN}", "b": {"c": ["x/${a}"], "d": "${seed}"}, "seed": 1, "hydra": 2})
    assert as_written(config) == {"a": "${oc.env:TOKEN}", "b": {"c": ["x/${oc.env:TOKEN}"], "d": 1}, "seed": 1}
    assert config.a == "hunter22"  # used as ever


def test_a_composed_config_is_cleaned_before_it_is_written() -> None:
    text = f"sink.mlflow.uri='http://me:{ODD}@host'"
    names = f"model=bert,{text}"
    hydra = {"overrides": {"task": ["model=bert", text, "x=${oc.env:Y}"]}, "job": {"override_dirname": names}}
    config = OmegaConf.create({"sink": {"mlflow": {"uri": f"http://me:{ODD}@host"}}, "hydra": hydra})
    hide(config)
    plain = OmegaConf.to_container(config)
    assert plain["sink"]["mlflow"]["uri"] == "http://host"
    assert plain["hydra"]["overrides"]["task"] == ["model=bert", "sink.mlflow.uri='http://host'", "x=${oc.env:Y}"]
    assert plain["hydra"]["job"]["override_dirname"] == "model=bert,sink.mlflow.uri='http://host'"
    assert with_credentials("http://host") == f"http://me:{ODD}@host"


def test_a_job_writes_no_credentials_anywhere(tmp_path: Path) -> None:
    uri = with_credentials(f"http://me:{ODD}@host")
    sink = MemorySink()
    run = new_run(tmp_path, tmp_path, name="bert", key="k", params={"at": uri}, config=f"uri: {uri}\n")
    with pytest.raises(ZeroDivisionError), job(run, Sinks({"memory": sink}), overrides=[uri]):
        raise ZeroDivisionError(f"cannot reach {uri} with {ODD}")
    assert json.loads((tmp_path / "run.json").read_text())["params"] == {"at": "http://host"}
    assert sink.status == "FAILED"
    for path in tmp_path.rglob("*"):
        assert ODD not in path.read_text(), path
    assert ODD not in str(vars(sink))


@pytest.mark.parametrize("password", [ODD, "p[w", "it's"])
def test_a_server_that_cannot_be_reached_is_named_without_credentials(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, password: str
) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    with pytest.raises(TrackingError) as error:
        database.prepare(tmp_path, f"http://me:{password}@127.0.0.1:9")
    assert "http://127.0.0.1:9 does not answer" in str(error.value)
    assert not any(part in str(error.value) for part in (password, "wo?rd"))
    assert mask(str(error.value)) == str(error.value)
