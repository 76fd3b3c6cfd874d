"""First guesses of Python's and the command's users: done, or answered in one line that names what to type."""

from __future__ import annotations

import contextlib
import io
import random
import string
import time
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import ctxexp
from ctxexp import CtxexpError
from ctxexp.command import cli, compose, registry
from ctxexp.command.overrides import write_out

from . import Lost, Silent

SECONDS = 2.0  # of processor time: the message is there while one still looks at the screen
LONGEST = 1100  # letters of a message
KINDS = ("model", "dataset", "metric", "transform", "baseline", "control", "sink", "engine")
SENTENCES = ["the river bank was wet", "the bank lent money", "money in the bank by the river"]
KEYS = (
    "min_contexts", "bootstrap", "batch_tokens", "dtype", "device", "words.max_contexts", "cache.limit_gb",
    "tracking.folder", "baseline.size", "pooling", "model.checkpoint", "model.weights", "dataset.path",
)  # fmt: skip
HUB = ("bert-base-uncased", "roberta-base", "gpt2-medium", "google-bert/bert-base-cased", "distilbert-base-uncased",
       "meta-llama/Llama-3.2-1B", "sentence-transformers/all-MiniLM-L6-v2", "./my-model", "checkpoints/step-100",
       "model.gguf")  # fmt: skip
TEXTS = ("mine.txt", "data/mine.txt", "./corpus.txt", "~/corpus.txt", "/data/a.txt", "b.text.gz")


def cases(seed: int, count: int, folder: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """Each kind of guess in turn, with drawn names and values."""
    for place in range(count):
        draw = random.Random(f"{seed} {place}")
        name, guess = list(GUESSES.items())[place % len(GUESSES)]
        yield name, partial(attempt, guess, draw, folder / str(place))


def attempt(guess: Callable[[random.Random], None], draw: random.Random, folder: Path) -> None:
    """Tries it in an empty folder that stays empty."""
    compose.prepare()
    options()
    folder.mkdir()
    with contextlib.chdir(folder):
        guess(draw)
    if left := list(folder.iterdir()):
        raise Lost(f"left in the working folder: {left}")


@cache
def options() -> dict[str, list[str]]:
    """The names of every group."""
    return {group: sorted(name for kind, name in registry().offers if kind == group) for group in KINDS}


def answer(message: str, seconds: float, *expected: str) -> None:
    """Raises Silent unless the message is one line that names what to type, and came soon."""
    if "\n" in message.strip() or len(message) > LONGEST or "Traceback" in message:
        raise RuntimeError(f"no single line: {message}")
    if missing := [words for words in expected if words not in message]:
        raise Silent(f"{missing} is not in: {message}")
    if seconds > SECONDS:
        raise Silent(f"{seconds:.1f} s of processor time: {message}")


def typed(*words: str) -> tuple[str, float]:
    """What the check of a run with these words says, and the seconds that it took; empty where it may run."""
    started = time.process_time()
    try:
        problems = compose.check_command(compose.read_overrides(list(words)), multirun=any("," in one for one in words))
    except CtxexpError as error:
        problems = [str(error)]
    seconds = time.process_time() - started
    if len(problems) > 1:
        raise Silent(f"several problems at once: {problems}")
    return "".join(problems), seconds


def refused(words: tuple[str, ...], *expected: str) -> None:
    message, seconds = typed(*words)
    if not message:
        raise Silent(f"{words} is taken without a word")
    answer(message, seconds, *expected)


def called(function: Callable[[], object], *expected: str) -> None:
    """A call in Python that is refused in one line."""
    started = time.process_time()
    try:
        function()
    except CtxexpError as error:
        answer(str(error), time.process_time() - started, *expected)
        return
    raise Silent("it was done, whatever it is")


# ------------------------------------------------------------------ the command's users


def misspell(name: str, draw: random.Random) -> str:
    """The name with a letter less, more, exchanged or doubled, two that changed places, or another dash or case."""
    at = draw.randrange(len(name))
    return draw.choice([
        name[:at] + name[at + 1 :],
        name[:at] + draw.choice(string.ascii_lowercase) + name[at:],
        name[:at] + name[at] + name[at:],
        name[:at] + name[at : at + 2][::-1] + name[at + 2 :],
        name.upper(),
        name.replace("_", "-") if "_" in name else name.capitalize(),
        name + "s",
    ])  # fmt: skip


def nearly(draw: random.Random) -> None:
    """A name of a group is misspelt: the name is offered."""
    group = draw.choice(list(options()))
    name = draw.choice([name for name in options()[group] if len(name) > 3])
    guess = misspell(name, draw)
    if guess in options()[group]:
        return
    refused((f"{group}={guess}",), name)


def nearly_a_key(draw: random.Random) -> None:
    """A key is misspelt: the key is offered."""
    key = draw.choice(KEYS[:9])
    at = draw.randrange(1, len(key) - 1)
    guess = key[:at] + key[at] + key[at:] if draw.random() < 0.5 else key[:at] + key[at + 1 :]
    if guess != key:
        refused((f"{guess}=1",), key)


def a_group_for_another(draw: random.Random) -> None:
    """A name of one group for another group: no name of it, and these are."""
    one, other = draw.sample(list(options()), 2)
    name = draw.choice(options()[one])
    if name not in options()[other]:
        message, seconds = typed(f"{other}={name}")
        answer(message or "", seconds, name)


def a_checkpoint(draw: random.Random) -> None:
    """A name of the hub or a folder, however it is typed: the long form, to the letter."""
    name = draw.choice(HUB)
    words = draw.choice([[name], [f"model={name}"], [f"model='{name}'"], ["seed=1", name]])
    long = ["model=huggingface", f"model.checkpoint={name}"]
    if [word for word in compose.read_overrides(words) if word != "seed=1"] != long:
        raise Silent(f"{words} is read as {compose.read_overrides(words)}")
    message, seconds = typed(*words)
    if message:  # a folder or a file that isn't there
        answer(message, seconds, str(Path(name)))
    both = compose.read_overrides([f"model=bert,{name}"])
    if write_out([f"model={both[0].partition(',')[2]}"]) != long:
        raise Silent(f"in a sweep {name} is {both}")


def a_file(draw: random.Random) -> None:
    """A file that isn't there, however it is typed: it is that file which is named."""
    name = draw.choice(TEXTS)
    words = draw.choice([name, f"dataset={name}", f"dataset.path={name}"])
    refused((words,), str(Path(name).expanduser()))


def a_home(draw: random.Random) -> None:
    """A path under a home needs no quotes: the file is not there, and it is that file which is named."""
    name = f"~/{''.join(draw.choices(string.ascii_lowercase, k=8))} x.txt"[: draw.choice([10, 16])]
    refused(("dataset=text", f"dataset.path={name}"), str(Path(name).expanduser()))


def twice(draw: random.Random) -> None:
    group = draw.choice(["model", "dataset", "transform", "baseline", "control", "metric"])
    one, other = draw.sample(options()[group], 2)
    words = [f"{group}={one}", f"{group}={other}"]
    draw.shuffle(words)
    between = draw.choice([[], ["seed=1"], ["min_contexts=3", "bootstrap=5"]])
    refused((words[0], *between, words[1]), f"{group} is given twice", "leave one out", f"-m {group}=")


def a_word(draw: random.Random) -> None:
    """A word alone: a group in the plural, a name, a verb of another program, an option with dashes."""
    group = draw.choice([group for group in options() if group not in ("engine", "model")])
    name = draw.choice(options()[group])
    word, expected = draw.choice([
        (f"{group}s", f"--help {group}"), (group, f"--help {group}"), (name, "="), (f"--{name}", "="),
        ("model", "--help model"), ("brt", "model=bert"),
    ])  # fmt: skip
    refused((word,), expected)


def other_flags(draw: random.Random) -> None:
    """How other programs take options: answered with this one's way, on the whole command."""
    name = draw.choice(["bert", "gpt2", "elmo"])
    words = draw.choice([
        ["--model", name], [f"--model={name}"], ["-model", name], ["--model-name", name],
        ["measure", name], ["eval", f"model={name}"], ["list"], ["ls"], ["metrics"], ["datasets"],
        ["model", name], ["model", "=", name], [f"model:{name}"], ["--list"], ["-l"], ["--models"],
        [f"models={name}"], [f"Model={name}"], [f"MODEL={name}"], ["version"], ["--verbose"], ["info"], ["help", "me"],
        ["init"], ["plot"], ["show"],
    ])  # fmt: skip
    out, err = io.StringIO(), io.StringIO()
    started = time.process_time()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = cli.run_command_line(words)
    seconds = time.process_time() - started
    message = err.getvalue().strip()
    if status == 0:
        if words[0] not in ("help",):
            raise Silent(f"{words} is taken: {out.getvalue()[:200]}")
        return
    answer(message, seconds)
    if not any(hint in message for hint in ("--help", "did you mean", "model=", "expected", "key=value")):
        raise Silent(f"{words}: what to type? {message}")


# ------------------------------------------------------------------ Python's users


class Model:
    """As one of transformers or torch."""

    __module__ = "transformers.models.bert.modeling_bert"


def a_model(draw: random.Random) -> None:
    thing, expected = draw.choice([
        (Model(), "ctxexp.from_transformers("), (["gpt2", "bert"], "ctxexp.compare("), (("bert",), "expected one"),
        (None, "model"), (5, "model"), ({"bert": 1}, "model"), (Model, "model"), (b"bert", "model"), (Path("bert"), ""),
        ({"gpt2"}, "model"), (len, "model"), ("brt", "bert"), ("gpt-2", "gpt2"),
        ("bert-base-uncased", "bert-base-uncased"),
        ("", ""), ("bert gpt2", ""), ("model=bert", ""),
    ])  # fmt: skip
    called(lambda: ctxexp.measure(thing, SENTENCES, progress=False), expected)


def a_text(draw: random.Random) -> None:
    thing, expected = draw.choice([
        (5, "text"), (5.0, "text"), (True, "text"), ({"a": 1}, "text"), ([], ""), ("", ""), ([1, 2], ""), ([None], ""),
        (b"bytes", "text"), ("no such.txt", "no such.txt"), (Path("nowhere/x.txt"), "nowhere"), ([["a", 1]], ""),
        (object(), "text"), ([[]], ""), ((s for s in ()), ""), ([""], ""), (len, "text"),
    ])  # fmt: skip
    called(lambda: ctxexp.measure("bert", thing, progress=False), expected)


def an_argument(draw: random.Random) -> None:
    key, expected = draw.choice([
        ("checkpoint", "model"), ("transforms", "transform="), ("controls", "control="), ("layer", "layers="),
        ("baselines", "baseline="), ("weight", "weights="), ("metric", "metrics="), ("devices", "device="),
        ("random_state", "seed="), ("batch_size", "options="), ("dataset", "text"), ("transfrom", "transform="),
        ("n", "options="),
    ])  # fmt: skip
    arguments: dict[str, Any] = {key: draw.choice(["x", 3, None, ["a"]])}
    called(lambda: ctxexp.measure("bert", SENTENCES, progress=False, **arguments), key, expected)


def some_options(draw: random.Random) -> None:
    thing, expected = draw.choice([
        ("a=b", "a"), ("min_context=3", "min_contexts"), (["min_contexts=x"], "min_contexts"), ("'", ""),
        ("bootstrap", "="),
        (["bootstrap 5"], "="), ({"min_contexts": "x"}, "min_contexts"),
        (5, "options"), ([5], "options"), (None, "options"),
        ("model=gpt2", "model"), ("-m seed=1,2", ""), (["seed=1,2"], "-m"), ("--help", ""), (b"seed=1", "options"),
        ([["seed=1"]], "options"), ("metric=st", "sts"),
    ])  # fmt: skip
    called(lambda: ctxexp.measure("bert", SENTENCES, options=thing, progress=False), expected)


def some_parts(draw: random.Random) -> None:
    key = draw.choice(["metrics", "baseline", "transform", "control"])
    group = key.removesuffix("s")
    name = draw.choice([name for name in options()[group] if len(name) > 3])
    guess = misspell(name, draw)
    odd = [(thing, group) for thing in (5, True, b"x", ["x", 5], {}, object(), "")]
    thing, expected = draw.choice([(guess, name), (guess, name), *odd])
    if thing in options()[group]:
        return
    called(lambda: ctxexp.measure("bert", SENTENCES, progress=False, **{key: thing}), expected)


def a_folder(draw: random.Random) -> None:
    thing = draw.choice(["nope", "no/such/run", Path("x"), "~/nope-nope", "a.json", ""])
    function = draw.choice([ctxexp.load, ctxexp.runs])
    called(lambda: function(thing), str(Path(thing).expanduser()) if thing else "")


def a_comparison(draw: random.Random) -> None:
    """Names, or other things, where results are compared."""
    thing = draw.choice([("bert", "gpt2"), (["bert", "gpt2"],), (5,), ("bert",), ({"bert": "gpt2"},), ([None],)])
    called(lambda: ctxexp.compare(*thing), "expected results", "ctxexp.measure(name, ...)")


def a_curve(draw: random.Random) -> None:
    """Names of curves and layers that aren't there, of results that are."""
    from tests.made import results_with

    results = results_with({"self_similarity/raw": [0.5, 0.25], "anisotropy/mean_cosine": [0.1, 0.2]})
    name = draw.choice(["self_similarty", "anisotrpy", "", "self-similarity", "anisotropy/mean", "raw", "all"])
    statistics = [partial(results.curve, "anisotropy")] if name else []  # without one the measure's own is meant
    look = draw.choice([results.curve, results.plot, *statistics])
    called(lambda: look(name), "self_similarity" if name in ("self_similarty", "self-similarity") else "")


GUESSES: dict[str, Callable[[random.Random], None]] = {
    "a misspelt name": nearly,
    "a checkpoint for a model": a_checkpoint,
    "a model of another kind": a_model,
    "a file for a data set": a_file,
    "a text of another kind": a_text,
    "a word alone": a_word,
    "options of another kind": some_options,
    "a path under a home": a_home,
    "an argument that isn't one": an_argument,
    "a name twice": twice,
    "parts of another kind": some_parts,
    "another program's flags": other_flags,
    "a folder without results": a_folder,
    "a misspelt key": nearly_a_key,
    "another group's name": a_group_for_another,
    "a curve that isn't there": a_curve,
    "names to compare": a_comparison,
}
