"""Where checkpoints come from: a folder, the hub's cache, the hub (a small one of our own), or one clear message."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from huggingface_hub import constants

from ctxexp.errors import ModelError
from ctxexp.models import Checkpoint
from ctxexp.models.transformer import checkpoint
from tests.hub_cache import put
from tests.shipped import bert
from tests.tiny_models import Folder

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def tiny(tiny_model: Folder) -> Path:
    return tiny_model("bert")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty hub cache, and a hub that nobody answers for."""
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    return tmp_path / "hub"


@pytest.fixture
def hub(cache: Path, monkeypatch: pytest.MonkeyPatch, tiny: Path) -> Iterator[list[str]]:
    """A hub on this machine with the models me/tiny and me/pickled; yields the requests that it got."""
    seen = []
    siblings = {
        "me/tiny": [*(p.name for p in tiny.iterdir()), "onnx/model.onnx", "pytorch_model.bin"],
        "me/pickled": ["config.json", "pytorch_model.bin"],
    }

    class Hub(BaseHTTPRequestHandler):
        def log_message(self, *args: object) -> None:
            pass

        def answer(self, code: int, body: bytes, **headers: str) -> None:
            self.send_response(code)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name.replace("_", "-"), value)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        def do_GET(self) -> None:
            seen.append(self.path)
            path = self.path.split("?")[0].strip("/").split("/")
            if path[:2] == ["api", "models"] and "/".join(path[2:4]) in siblings:
                name = "/".join(path[2:4])
                if len(path) > 5 and path[5] not in (COMMIT, "main"):
                    return self.answer(404, b"{}", X_Error_Code="RevisionNotFound")
                if path[4:5] == ["tree"]:
                    files = [p for p in tiny.iterdir() if p.name in siblings[name]]
                    tree = [{"type": "file", "path": p.name, "size": p.stat().st_size, "oid": "0"} for p in files]
                    return self.answer(200, json.dumps(tree).encode(), Content_Type="application/json")
                about = {"id": name, "sha": COMMIT, "siblings": [{"rfilename": f} for f in siblings[name]]}
                return self.answer(200, json.dumps(about).encode(), Content_Type="application/json")
            file = tiny / path[-1]
            if "/".join(path[:2]) in siblings and file.is_file():
                data = file.read_bytes()
                return self.answer(200, data, ETag=f'"{hashlib.sha256(data).hexdigest()}"', X_Repo_Commit=COMMIT)
            return self.answer(404, b"{}", X_Error_Code="RepoNotFound")

        do_HEAD = do_GET  # noqa: N815  # the base class's name

    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    here = f"http://127.0.0.1:{server.server_port}"  # HF_ENDPOINT, which the hub library reads when it is imported
    monkeypatch.setattr(constants, "ENDPOINT", here)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", here + "/{repo_id}/resolve/{revision}/{filename}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield seen
    server.shutdown()
    thread.join()
    server.server_close()


def test_the_cache_is_enough(cache: Path, tiny: Path) -> None:
    snapshot = put(cache, "me/tiny", COMMIT, *tiny.iterdir())
    found = Checkpoint.of("me/tiny")
    assert (found.folder, found.revision) == (snapshot, COMMIT)
    assert found.identity == f"me/tiny@{COMMIT}"
    weights = hashlib.sha256((tiny / "model.safetensors").read_bytes()).hexdigest()
    in_folder = Checkpoint.of(str(tiny))
    assert found.weights_hash == in_folder.weights_hash == weights[:16]  # read off the blob's name
    assert in_folder.identity == f"sha256:{in_folder.content_hash}"


def test_published_weights_are_found_under_their_older_id(cache: Path, tiny: Path) -> None:
    put(cache, "bert-base-cased", checkpoint.PUBLISHED_CHECKPOINTS["bert"].revision, *tiny.iterdir())
    made = bert(weights="published", device="cpu")
    assert made.details["checkpoint"] == "bert-base-cased"
    assert made.details["revision"] == checkpoint.PUBLISHED_CHECKPOINTS["bert"].revision
    assert f"bert-base-cased@{checkpoint.PUBLISHED_CHECKPOINTS['bert'].revision}" in made.name


def test_a_cache_without_a_tokenizer_is_completed(hub: list[str], cache: Path, tiny: Path) -> None:
    for file in put(cache, "me/tiny", COMMIT, *tiny.iterdir()).glob("tokenizer*"):
        file.unlink()
    assert (Checkpoint.of("me/tiny").folder / "tokenizer.json").is_file()
    assert any("tokenizer.json" in path for path in hub)


def test_offline_and_not_cached_is_one_clear_message(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    began = time.monotonic()
    with pytest.raises(ModelError) as unreachable:
        bert(weights="published")
    assert time.monotonic() - began < 10
    message, revision = str(unreachable.value), checkpoint.PUBLISHED_CHECKPOINTS["bert"].revision
    assert message.startswith(f"no checkpoint google-bert/bert-base-cased at revision {revision}: ")
    assert str(cache) in message
    assert "the hub at http://127.0.0.1:9 gives none" in message
    assert f"hf download google-bert/bert-base-cased --revision {revision}" in message
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(ModelError, match=r"no checkpoint gpt3: .*offline"):
        Checkpoint.of("gpt3")


def test_a_half_downloaded_cache_is_not_taken_for_whole(cache: Path, tiny: Path) -> None:
    (put(cache, "me/tiny", COMMIT, *tiny.iterdir()) / "model.safetensors").unlink()
    with pytest.raises(ModelError, match="no checkpoint me/tiny: not in the hub's cache"):
        Checkpoint.of("me/tiny")


def test_download_once_then_cache(hub: list[str], tiny: Path) -> None:
    found = Checkpoint.of("me/tiny")
    assert found.revision == COMMIT
    assert found.weights_hash == Checkpoint.of(str(tiny)).weights_hash
    assert not any("onnx" in path or ".bin" in path for path in hub)
    hub.clear()
    assert Checkpoint.of("me/tiny") == found
    assert hub == []


def test_what_the_hub_answers_is_said(hub: list[str]) -> None:
    with pytest.raises(ModelError, match=r"has no model.safetensors; .* pickled weights run whatever code"):
        Checkpoint.of("me/pickled")
    with pytest.raises(ModelError, match=r"127.0.0.1:\d+ gives no me/none: .*Repository Not Found"):
        Checkpoint.of("me/none")
    with pytest.raises(ModelError, match=r"gives no me/tiny at revision v9: .*Revision Not Found"):
        Checkpoint.of("me/tiny", "v9")


def test_a_sharded_checkpoint_needs_every_part(tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    names = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]
    index = {"metadata": {}, "weight_map": {"a": names[0], "b": names[1]}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    (tmp_path / names[0]).write_bytes(b"1")
    with pytest.raises(ModelError, match=r"lacks 1 of the parts that .*index.json names \(model-00002-of-00002"):
        checkpoint.folder_checkpoint(tmp_path, source="x")
    (tmp_path / names[1]).write_bytes(b"2")
    assert len(checkpoint.folder_checkpoint(tmp_path, source="x").weights_hash) == 16


@pytest.mark.parametrize("index", ["", "{}"])
def test_a_damaged_index_of_shards_is_named(tmp_path: Path, index: str) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors.index.json").write_text(index)
    with pytest.raises(ModelError, match=r"index.json is no index of weights .*copy or download it again"):
        checkpoint.folder_checkpoint(tmp_path, source="x")
