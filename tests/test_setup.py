"""`.ci/environment.py`, which `make setup` and `.ci/` install with: pip's settings in uv's words."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(Path(__file__).parents[1] / ".ci" / "environment.py"))


def test_pip_s_settings_are_those_of_its_files_and_the_environment_goes_first(script: dict[str, Any]) -> None:
    listing = "\n".join([
        ":env:.find-links='/of/the/environment'",
        "global.cert='/etc/ca.crt'",
        "global.extra-index-url='\\nfile:///a/simple\\nfile:///b/simple'",
        "global.find-links='/of/a/file'",
        "global.index-url='http://mirror/simple'",
        "global.no-index='false'",
        "install.index-url='http://other/simple'",
        "download.cert='/no/matter'",
    ])  # fmt: skip
    environ = {"PIP_FIND_LINKS": "/of/the/environment", "PIP_CERT": "", "HOME": "/h", "PIP_TRUSTED_HOST": "a b"}
    assert script["pip_settings"](listing, environ) == {
        "cert": "/etc/ca.crt",
        "extra-index-url": "\nfile:///a/simple\nfile:///b/simple",
        "find-links": "/of/the/environment",
        "index-url": "http://other/simple",
        "no-index": "false",
        "trusted-host": "a b",
    }
    assert script["pip_settings"]("", {}) == {}


def test_uv_is_told_what_pip_is_told(script: dict[str, Any]) -> None:
    settings = {"cert": "/my files/ca.crt", "extra-index-url": "\nu\n  v", "find-links": "/a /b", "index-url": " i "}
    told = {
        "SSL_CERT_FILE": "/my files/ca.crt",
        "UV_INDEX": "u v",
        "UV_FIND_LINKS": "/a,/b",
        "UV_DEFAULT_INDEX": "i",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
    }
    assert script["uv_variables"](settings, {}) == told
    assert script["uv_variables"]({}, {}) == {}
    assert script["uv_variables"]({"trusted-host": "m n"}, {}) == {"UV_INSECURE_HOST": "m n"}
