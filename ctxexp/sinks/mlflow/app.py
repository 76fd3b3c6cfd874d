"""MLflow's web application with short addresses: `/sweep/<id>` leads to a sweep's charts, `/sweep/last` to the last's,
and so does `/`.

Its page opens on curves: without the assistant, without telemetry, and with curves where runs are compared
(`entry.html`). `mlflow server --app-name ctxexp` finds the application by the entry point `mlflow.app`; `ctxexp ui`
starts that.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Awaitable, Callable, MutableMapping
from functools import cache, cached_property
from typing import Any
from urllib.parse import unquote

from ctxexp.files.templates import render_page
from ctxexp.sinks.mlflow import database, settle
from ctxexp.sinks.mlflow.links import LAST, SHORT
from ctxexp.sinks.mlflow.ui import charts_link

STORE = "MLFLOW_BACKEND_STORE_URI"
FRONT = "/#/experiments"  # the last sweep's address in a store without one
PARTIAL = (b"if-none-match", b"if-modified-since", b"range", b"if-range")  # headers that ask for less than the page
OF_THE_BODY = (b"content-length", b"etag", b"last-modified")
Message = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]


settle()  # a server alone imports this


class ShortLinks:
    """An ASGI application: MLflow's own, which is imported once something is asked, beside the short addresses."""

    @cached_property
    def mlflow(self) -> Callable[..., Awaitable[None]]:
        from mlflow.server.fastapi_app import app

        whole: Callable[..., Awaitable[None]] = app
        return whole

    async def __call__(
        self,
        scope: Message,
        receive: Callable[[], Awaitable[Message]],
        send: Send,
    ) -> None:
        path = str(scope.get("path", ""))
        if scope["type"] == "http" and path == "/":
            headers = [header for header in scope.get("headers", ()) if header[0] not in PARTIAL]
            await self.mlflow({**scope, "headers": headers, "extensions": {}}, receive, _with_entry(send))
            return
        if scope["type"] != "http" or not path.startswith(SHORT):
            await self.mlflow(scope, receive, send)
            return
        hosts = [value.decode("latin-1") for name, value in scope.get("headers", ()) if name == b"host"] or [""]
        if not all([await asyncio.to_thread(_is_allowed, host) for host in hosts]):
            await send({"type": "http.response.start", "status": 403, "headers": [(b"content-type", b"text/plain")]})
            await send({"type": "http.response.body", "body": b"Invalid Host header"})
            return
        name = unquote(path.removeprefix(SHORT)).strip("/")
        is_name = re.fullmatch(r"\w[\w.-]*", name)  # of a sweep; nothing else reaches the store
        place = await asyncio.to_thread(_place, name) if is_name else ""
        place = place or (FRONT if name == LAST else "")
        text = b"" if place else f"no sweep {name!r} in this store".encode()
        headers = [(b"location", place.encode())] if place else [(b"content-type", b"text/plain; charset=utf-8")]
        await send({"type": "http.response.start", "status": 302 if place else 404, "headers": headers})
        await send({"type": "http.response.body", "body": text})


def _with_entry(send: Send) -> Send:
    """`send` for MLflow's page, which puts `entry.html` at its head."""
    start: Message = {}
    body = bytearray()

    async def send_page(message: Message) -> None:
        if message["type"] == "http.response.start":
            start.update(message)
            return
        body.extend(message.get("body", b""))
        if message.get("more_body"):
            return
        page = bytes(body).replace(b"<head>", b"<head>" + _entry(), 1)
        headers = [header for header in start.get("headers", ()) if header[0].lower() not in OF_THE_BODY]
        length = (b"content-length", str(len(page)).encode())
        await send({**start, "headers": [*headers, *([length] if body else [])]})
        await send({"type": "http.response.body", "body": page})

    return send_page


@cache
def _entry() -> bytes:
    """The script that MLflow's page runs before anything else."""
    telemetry = os.environ.get("MLFLOW_DISABLE_TELEMETRY", "").lower() not in ("true", "1")
    return render_page("ctxexp.sinks.mlflow", "entry.html", telemetry=telemetry).encode()


def _is_allowed(host: str) -> bool:
    """Whether MLflow would answer a request with this Host header; another name for this machine may be an attack by
    DNS rebinding."""
    from mlflow.server import security_utils

    if os.environ.get("MLFLOW_SERVER_DISABLE_SECURITY_MIDDLEWARE") == "true":
        return True
    allowed = security_utils.get_allowed_hosts_from_env() or security_utils.get_default_allowed_hosts()
    return "*" in allowed or security_utils.is_allowed_host_header(allowed, host)


def _place(name: str) -> str:
    """The address of a sweep's charts on this server; empty where its store has no such sweep."""
    client = database.client(os.environ[STORE])
    ids = [experiment.experiment_id for experiment in client.search_experiments()]
    return charts_link(client, ids, "", "" if name == LAST else name) or ""


app = ShortLinks()
