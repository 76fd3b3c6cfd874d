"""Odd plugins, each a file: what fails in one, at import or in use, ends in one line that names it."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from ctxexp import CtxexpError
from ctxexp.command import Built, compose
from ctxexp.command.names import quote
from ctxexp.errors import PluginError
from ctxexp.plugins.registry import load_plugin_files

from . import Silent as SilentlyWrong
from .odd_plugins import ODD, RAISES, SOUND

LONGEST = 1100  # letters of a message

RAISING = (
    'register("odd", Model)',
    "yield ctxexp.EncodedSentence(s.words, self.vectors(len(s.words)))",
    "return np.ones(x.shape[:-2])",
    "return self",
    "return x.copy()",
    'return ctxexp.Corpus.of("odd", ',
)
"""Pieces that every exception is tried at."""

WHOLE = ["", "\0", "def f(:", "# -*- coding: nonsense -*-", "x = 1", "\udcff"]


def pieces() -> list[tuple[str, str]]:
    """(piece of the sound plugin, what stands in its place) of every odd plugin."""
    raises = RAISES.strip().splitlines()
    found = [(SOUND, text) for text in WHOLE]
    found += [("import sys", f"import sys\n{words}") for words in raises]
    found += [(piece, words) for piece in RAISING for words in raises]
    found += [("yield occurrences", f"{words}; yield occurrences") for words in raises]
    for piece, lines in ODD.items():
        found += [(piece, line.replace("\\n", "\n").replace("OLD", piece)) for line in lines.strip("\n").splitlines()]
    return found


def cases(seed: int, count: int, folder: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """Plugins with one odd piece each, tried from their import to their use."""
    odd = random.Random(seed).sample(pieces(), len(pieces()))
    for place in range(count):
        old, new = odd[place % len(odd)]
        yield f"{old.strip()[:40]!a} -> {new.strip()[:80]!a}", partial(attempt, old, new, folder / f"odd_{place}.py")


def attempt(old: str, new: str, path: Path) -> None:
    """Write the plugin, run what it brings, and see that what is wrong is told in one line with the plugin's name."""
    assert old in SOUND
    path.write_text(SOUND.replace(old, new, 1), encoding="utf-8", errors="surrogateescape")
    try:
        use(path)
    except CtxexpError as error:
        message = str(error)
        assert "odd" in message, f"it names neither the plugin nor what it brings: {message}"
        assert "\n" not in message, message
        assert len(message) < LONGEST, message
        raise
    finally:
        load_plugin_files([])
        path.unlink()


def use(path: Path) -> None:
    """What the command does with a plugin file, everything of its kinds chosen at once."""
    chosen = [f"{kind}=odd" for kind in ("model", "dataset", "metric", "transform", "baseline")]
    overrides = compose.take_plugins([f"plugins=[{quote(str(path))}]", *chosen, "bootstrap=5", "min_contexts=2"])
    folder = path.with_suffix("")
    overrides.append(f"cache.folder={quote(str(folder))}")
    compose.prepare()
    for problem in compose.check_command(overrides, multirun=False):
        raise PluginError(problem)
    config = compose.config_of(overrides)
    folder.mkdir(exist_ok=True)
    results = Built(config).run(folder)
    if not any(key.startswith("odd/") for key in results.by_name):
        raise SilentlyWrong(f"nothing was measured, and nothing said: {sorted(results.by_name)}")
