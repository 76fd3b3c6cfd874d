"""Vectors of texts from a server: OpenAI's protocol, which infinity, vLLM, LM Studio and llama.cpp's server speak too,
that of text-embeddings-inference, Ollama's, and llama.cpp's own."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit, urlunsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

import numpy as np

BATCH = 32  # texts of a request
TIMEOUT = 300.0  # seconds
SHOWN = 200  # characters of a server's own message


class Protocol(NamedTuple):
    """What is sent to a path, and where in the answer the vectors are."""

    path: str
    body: Callable[[list[str], str], object]
    vectors: Callable[[Any], Sequence[Any]]


def _by_index(answers: Sequence[Mapping[str, Any]]) -> list[Any]:
    return [one["embedding"] for one in sorted(answers, key=lambda one: int(one["index"]))]


def _input(texts: list[str], model: str) -> object:
    return {"input": texts, "model": model}


OPENAI = Protocol("/v1/embeddings", _input, lambda got: _by_index(got["data"]))
PROTOCOLS = (
    OPENAI,
    Protocol("/api/embed", _input, lambda got: got["embeddings"]),
    Protocol("/embed", lambda texts, model: {"inputs": texts, "truncate": True}, lambda got: got),
    OPENAI._replace(path="/embeddings"),
    Protocol("/embedding", lambda texts, model: {"content": texts}, _by_index),
)


class ServerError(OSError):
    """A server that can't be asked, or answers something else."""


class _NoRedirect(HTTPRedirectHandler):
    """A key isn't sent to wherever a server points."""

    def redirect_request(self, *args: Any) -> None:
        return None


class Server:
    """Vectors of texts by a server.

    Args:
        url: Of the server, or of its path for embeddings; the former is tried with each known path.
        model: The model's name there; empty: the only one that the server lists, if it lists any.
        key: The environment variable that holds the key; empty: none.
    """

    def __init__(self, url: str, model: str = "", key: str = "") -> None:
        if key and not os.environ.get(key):
            raise ServerError(f"key={key}: no such environment variable, or it is empty; it has the server's key")
        parts = urlsplit(url)
        self._key = os.environ.get(key, "") if key else ""
        self._url, self.model = url, model
        # what is shown has neither a password nor a query, which may be a key
        self.title = urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
        path = parts.path.rstrip("/")
        named = [one for one in PROTOCOLS if path.endswith(one.path)][:1]
        self._protocols = named or list(PROTOCOLS)
        self._base = parts._replace(path=path.removesuffix(named[0].path) if named else path)

    def __call__(self, texts: Sequence[str], batch: int = BATCH) -> np.ndarray:
        """(n, dim) float64, `batch` texts a request; NaN for a text that the server refuses by itself.

        A vector a token is answered by its mean. Raises ServerError for no server, a refusal of every text, or another
        answer than vectors.
        """
        rows: list[np.ndarray | None] = []
        error = ServerError(f"{self.title}: no text to ask for")
        for start in range(0, len(texts), batch):
            part = list(texts[start : start + batch])
            try:
                rows += self._vectors(part)
            except ServerError:
                if len(part) == 1 and not any(one is not None for one in rows):
                    raise
                for text in part:  # one of them may be too long for it
                    try:
                        rows += self._vectors([text])
                    except ServerError as refusal:
                        rows.append(None)
                        error = refusal
        dims = {len(row) for row in rows if row is not None}
        if not dims:
            raise error
        if len(dims) > 1:
            raise ServerError(f"{self.title} answered vectors of different lengths: {sorted(dims)}")
        return np.stack([np.full(max(dims), np.nan) if row is None else row for row in rows])

    def _vectors(self, texts: list[str]) -> list[np.ndarray]:
        protocol = self._protocol()
        answer = self._request(protocol.path, protocol.body(texts, self.model))
        try:
            vectors = [np.asarray(one, np.float64) for one in protocol.vectors(answer)]
            vectors = [one if one.ndim == 1 else one.reshape(-1, one.shape[-1]).mean(axis=0) for one in vectors]
        except (KeyError, TypeError, ValueError, AttributeError, IndexError):
            raise ServerError(f"{self.title} answered no vectors: {self._shown(json.dumps(answer))}") from None
        if len(vectors) != len(texts) or not all(len(one) and np.isfinite(one).all() for one in vectors):
            raise ServerError(
                f"{self.title} answered {len(vectors)} vectors for {len(texts)} texts; expected one each, of finite "
                "numbers"
            )
        return vectors

    def _protocol(self) -> Protocol:
        """The protocol that the server speaks; tried once. Raises ServerError where none is spoken."""
        told = ""
        for one in self._protocols if len(self._protocols) > 1 else ():
            try:
                one.vectors(self._request(one.path, one.body(["a"], self._name())))
            except ServerError as error:
                if "no server" in str(error):
                    raise
                told = str(error) if not told or " 404" in told or " 405" in told else told
            except (KeyError, TypeError, ValueError):
                told = told or f"{one.path}: no vectors"
            else:
                self._protocols = [one]
                break
        else:
            if len(self._protocols) > 1:
                tried = ", ".join(one.path for one in self._protocols)
                raise ServerError(f"{self.title} gives no vectors at {tried}; {told}")
        self._name()
        return self._protocols[0]

    def _name(self) -> str:
        """The model's name; asked for once."""
        if not self.model:
            try:
                listed = self._request("/v1/models", None)["data"]
                self.model = str(listed[0]["id"]) if len(listed) == 1 else ""
            except (ServerError, KeyError, TypeError, IndexError):
                pass
            self.model = self.model or "default"
        return self.model

    def _request(self, path: str, body: object) -> Any:
        """The answer to a request. Raises ServerError, which never names the key."""
        headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "ctxexp"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        url = urlunsplit(self._base._replace(path=self._base.path + path))
        data = None if body is None else json.dumps(body).encode()
        try:
            with build_opener(_NoRedirect).open(Request(url, data, headers), timeout=TIMEOUT) as answer:
                return json.loads(answer.read())
        except HTTPError as error:
            said = self._shown(error.read(1000).decode(errors="replace"))
            raise ServerError(f"{self.title} answers {path} with {error.code} {error.reason}: {said}") from None
        except (URLError, TimeoutError, ConnectionError) as error:
            reason = getattr(error, "reason", error)
            raise ServerError(f"{self.title}: no server answers there ({self._shown(str(reason))})") from None
        except ValueError:
            raise ServerError(f"{self.title} answers {path} with something else than JSON") from None

    def _shown(self, text: str) -> str:
        """A message without the key, in short."""
        return (text.replace(self._key, "***") if self._key else text)[:SHOWN].replace("\n", " ")
