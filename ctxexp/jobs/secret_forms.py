"""A secret as libraries quote it: escaped for Python, JSON, HTML, SQL, a shell or a URL, or cut by a length limit."""

from __future__ import annotations

import html
import json
import re
import shlex
from collections.abc import Callable
from functools import cache
from urllib.parse import quote, quote_plus

GLUED = 8  # from so many characters on, a secret is masked inside of longer words too
SHORTEST_CUT = 4  # characters of a cut secret: fewer are the beginning of many words


def _bytes_of(text: str) -> bytes:
    return text.encode(errors="surrogatepass")  # any text can be a secret


# Literal texts, not one expression with alternatives for each character: that can take exponential time.
_ESCAPES: tuple[Callable[[str], str], ...] = (
    lambda text: repr(text)[1:-1],
    lambda text: repr(text + "'\"")[1:-4],  # within a text that has both quotes, where `'` is escaped
    lambda text: ascii(text + "'\"")[1:-4],
    lambda text: repr(_bytes_of(text))[2:-1],
    lambda text: repr(_bytes_of(text + "'\""))[2:-4],
    lambda text: json.dumps(text)[1:-1],
    lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    lambda text: quote(_bytes_of(text)),
    lambda text: quote(_bytes_of(text), safe=""),
    lambda text: quote(_bytes_of(text), safe="!#$%&'()*+,/:;=?@[]~"),  # of HTTP clients
    lambda text: quote_plus(_bytes_of(text)),
    lambda text: re.sub("%[0-9A-F]{2}", lambda hexadecimal: hexadecimal[0].lower(), text),
    html.escape,
    lambda text: shlex.quote(text + " ")[1:-2],
    lambda text: text.replace("'", "''"),  # of SQL and YAML
    lambda text: text.replace('"', '""'),
    lambda text: " ".join(text.split()),
)


@cache
def forms(secret: str) -> tuple[str, ...]:
    """The secret and its escaped forms, escaped once and twice, the longest first."""
    once = {escape(secret) for escape in _ESCAPES}
    twice = {escape(form) for form in once for escape in _ESCAPES}
    return tuple(sorted({secret} | once | twice, key=lambda form: (-len(form), form)))


@cache
def _word(secret: str) -> re.Pattern[str]:
    """The expression that finds the secret, its blanks however wide, and a short one only as a word of its own, since
    it may be part of many words."""
    escaped = forms(secret) if len(secret) < GLUED else (secret,)
    any_form = "|".join(r"\s+".join(map(re.escape, re.split(r"\s+", form))) for form in escaped)
    start, end = (r"(?<!\w)" if secret[0].isalnum() else "", r"(?!\w)" if secret[-1].isalnum() else "")
    return re.compile(f"{start}(?:{any_form}){end}" if len(secret) < GLUED else any_form)


def mask_secret(text: str, secret: str) -> str:
    """The text with `***` for the secret in all its forms."""
    if len(secret) >= GLUED:
        for form in forms(secret):
            text = text.replace(form, "***")
        if not re.search(r"\s", secret):
            return text
    return _word(secret).sub("***", text)


def mask_cut(text: str, secret: str) -> str:
    """The text with `***` for beginnings of the secret that a message's length limit has cut: `hunt...`."""
    for form in forms(secret):
        place = text.find("...") if form[:SHORTEST_CUT] in text else -1
        while place >= 0:
            lengths = range(min(len(form), place), SHORTEST_CUT - 1, -1)
            if length := next((n for n in lengths if text.startswith(form[:n], place - n)), 0):
                text = f"{text[: place - length]}***{text[place:]}"
                place += 3 - length
            place = text.find("...", place + 3)
    return text
