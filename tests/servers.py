"""Servers that answer as a test says."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Speak = Callable[[str, Any], tuple[int, Any]]  # of a path and a document: a status and a document


class Speech(BaseHTTPRequestHandler):
    """A server whose `speak` answers each path, a status and a document."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        server: Any = self.server
        server.requests.append((self.path, json.loads(body or b"null"), dict(self.headers)))
        status, document = server.speak(self.path, json.loads(body or b"null"))
        content = json.dumps(document).encode()
        self.send_response(status)
        if status == 302:
            self.send_header("Location", str(document))
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST  # noqa: N815  # its base class says so

    def log_message(self, *_: Any) -> None:
        """Nothing is printed."""


@contextmanager
def serving(speak: Speak) -> Iterator[Any]:
    """A server at `url` that answers so; `requests` holds each path, document and headers."""
    server: Any = ThreadingHTTPServer(("127.0.0.1", 0), Speech)
    server.speak, server.requests = speak, []
    server.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()
