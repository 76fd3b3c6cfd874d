"""The documentation runs: every `bash` block as typed, every Python listing as a plugin; links lead somewhere.

A block of `sh` needs what a machine may not have (a hub, data, an editor's screen): its commands are composed instead.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import re
import shlex
import shutil
import subprocess
import sys
import types
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

from tests.sample_results import run_info
from tests.shipped import GROUPS, mini
from tests.warm import TEXT, Warm

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "ctxexp" / "datasets" / "polysemy"
PAGES = sorted(
    [
        *(ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "SECURITY")),
        *(ROOT / "docs").rglob("*.md"),
        ROOT / "plugins" / "README.md",
    ]
)


ROOMS = "command", "datasets", "errors", "maths", "models", "report", "results", "testing"
PUBLIC = [
    f"{module}.{name}"
    for module in ("ctxexp", *(f"ctxexp.{room}" for room in ROOMS))
    for name in importlib.import_module(module).__all__
]
PLUGIN_PAGES = sorted(ROOT.glob("plugins/*/README.md"))


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def commands() -> list[Any]:
    """Each block with its page; one that stands on several pages once, on the first. The gallery's twenty figures are
    drawn by night."""
    found = {block: page for page in reversed(PAGES) for block in blocks(page, "bash")}
    nights = {"gallery": pytest.mark.nightly}
    return [pytest.param(page, block, marks=nights.get(page.stem, ())) for block, page in found.items()]


def figures(page: Path, block: str) -> list[str]:
    """Those that the gallery shows as pictures between the block and the next."""
    shown = page.read_text(encoding="utf-8").partition(f"{block}```")[2].partition("```")[0]
    return [Path(name).stem for name in re.findall(r"\]\((pictures/.*?\.png)\)", shown)]


def listings(page: Path) -> dict[str, str]:
    """Files that the page shows: every Python or YAML block whose first line is a comment with the file's name."""
    shown = blocks(page, "python") + blocks(page, "yaml")
    return {m.group(1): block for block in shown if (m := re.match(r"# (\S+\.(?:py|yaml))\n", block))}


def stand_in(folder: Path, page: Path) -> dict[str, str]:
    """Write the page's files into `folder`; the environment for commands that are typed there."""
    for name, text in listings(page).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("MLFLOW_", "HYDRA_"))}
    return {**kept, "PATH": path, "HF_HUB_OFFLINE": "1"}


def test_the_gallery_holds_every_figure() -> None:
    docs = ROOT / "docs"
    shown = set(re.findall(r"^!\[.+\]\((.+)\)$", (docs / "gallery.md").read_text(encoding="utf-8"), flags=re.MULTILINE))
    assert shown == {str(path.relative_to(docs)) for path in docs.rglob("*.png")}


@pytest.fixture(scope="module")
def beginning(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The embedded text's first 120 sentences, with the table of all senses."""
    folder = tmp_path_factory.mktemp("beginning")
    lines = (DATA / "sentences.tsv").read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / "sentences.tsv").write_text("".join(lines[:120]), encoding="utf-8")
    shutil.copy(DATA / "senses.tsv", folder)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "block"), commands(), ids=lambda v: v.splitlines()[0][:60] if isinstance(v, str) else v.stem
)
def test_commands_run_as_they_stand(
    page: Path, block: str, tmp_path: Path, common: Path, empty_store: Path, warm: Warm, beginning: Path
) -> None:
    """On the beginning of the embedded text: what a command does hangs on no number of sentences."""
    cache = (tmp_path if "cache clear" in block else common) / "cache"  # shared, as a user's would be
    env = {**stand_in(tmp_path, page), "CTXEXP_CACHE": str(cache), TEXT: str(beginning)}
    env["PATH"] = f"{warm.folder}{os.pathsep}{env['PATH']}"
    (tmp_path / "mlruns").mkdir()
    shutil.copy(empty_store / "mlflow.db", tmp_path / "mlruns")  # as a user's second command finds it
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=400
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    for name in figures(page, block):
        assert [*tmp_path.glob(f"mlruns/results/*/summary/{name}.svg")], name


@pytest.mark.slow
@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "console")], ids=lambda p: p.stem)
def test_mistakes_are_answered_as_printed(page: Path, tmp_path: Path) -> None:
    """A `console` block: a line `$ command`, then its output; `...` stands for anything."""
    env = stand_in(tmp_path, page)
    for dialogue in "".join(blocks(page, "console")).split("$ ")[1:]:
        command, _, answer = dialogue.partition("\n")
        done = subprocess.run(
            ["bash", "-c", command], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=100
        )
        pattern = ".*".join(map(re.escape, answer.strip().split("...")))
        assert re.search(rf"^{pattern}$", done.stderr, flags=re.MULTILINE), done.stderr
        assert done.returncode == 2


def test_the_plugin_listings_are_as_short_as_promised() -> None:
    files = listings(ROOT / "plugins" / "README.md")
    promised = {"model": 30, "metric": 20, "pair_metric": 40, "baseline": 25, "control": 25, "sink": 35}
    promised |= {"transform": 25, "dataset": 20}
    for name, most in promised.items():
        assert len(files[f"my_{name}.py"].splitlines()) < most


def put_text_and_model(folder: Path) -> None:
    """A file of 60 sentences and a checkpoint's folder, where the tutorial and the README say."""
    from tests.shipped import polysemy

    (folder / "sentences.txt").write_text("".join(f"{s.text}\n" for s in polysemy().sentences[:60]), encoding="utf-8")
    (folder / "path" / "to").mkdir(parents=True)
    (folder / "path" / "to" / "model").symlink_to(mini("gpt2"))


@pytest.mark.slow
def test_the_readmes_lines_measure_any_text_and_model(
    common: Path, tmp_path: Path, empty_store: Path, warm: Warm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file of 60 sentences and a checkpoint's folder are put where the tutorial and the README say; what the tutorial
    shows is what is printed."""
    [command] = [b.strip() for b in blocks(ROOT / "docs" / "tutorial.md", "sh") if "path/to/model" in b]
    put_text_and_model(tmp_path)
    shutil.copytree(empty_store, tmp_path / "mlruns")
    monkeypatch.chdir(tmp_path)
    env = {**os.environ, "CTXEXP_CACHE": str(common / "cache"), "HF_HUB_OFFLINE": "1"}
    words = command.removeprefix("ctxexp").split()
    done = subprocess.run(
        [str(warm.python), "-m", "ctxexp", *words], env=env, capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 0, done.stderr
    [shown] = blocks(ROOT / "docs" / "tutorial.md", "text")
    head, *lines = shown.splitlines()
    printed = done.stdout.partition(f"{head}\n")[2].splitlines()[: len(lines)]
    number = re.compile(r"\d\.\d+")
    for line, there in zip(lines, printed, strict=True):
        assert number.sub("#", there).startswith(number.sub("#", line))
        numbers = [[float(n) for n in number.findall(text)] for text in (there, line)]
        assert numbers[0][: len(numbers[1])] == pytest.approx(numbers[1], abs=2e-3), line


def python_blocks() -> list[tuple[Path, str]]:
    """Each Python block that is no file's listing, with its page; one that stands on several pages once. Those that
    need data that isn't here are of the language `py`, as commands are of `sh`."""
    every = {block: page for page in [*PAGES, *PLUGIN_PAGES] for block in blocks(page, "python")}
    return [(page, block) for block, page in every.items() if block not in listings(page).values()]


@pytest.mark.slow
@pytest.mark.parametrize(("page", "block"), python_blocks(), ids=lambda v: v.stem if isinstance(v, Path) else "")
def test_python_blocks_run_as_they_stand(
    page: Path, block: str, common: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a folder with a text and a checkpoint where pages say; tests that a block defines are called."""
    put_text_and_model(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CTXEXP_CACHE", str(common / "cache"))
    names: dict[str, Any] = {}
    exec(compile(block, str(page), "exec"), names)
    for name in [name for name in names if name.startswith("test_")]:
        names[name]()
    if "results" in names:
        assert set(names["results"].frame.measure) >= {"self_similarity", "anisotropy"}


def unrun() -> list[str]:
    """The commands of `sh` blocks that measure, and the words `key=value` of the questions."""
    typed = [line for page in PAGES for block in blocks(page, "sh") for line in block.splitlines()]
    found = [m[1] for line in typed if (m := re.search(r"ctxexp ((?:-m |experiment=|[a-z_]+=)[^#]*)", line))]
    asked = re.findall(r"`([a-z_.]+=[^`\s]+)`", (ROOT / "docs" / "faq.md").read_text(encoding="utf-8"))
    return [*dict.fromkeys(line.split("plugins=")[0].replace(",my_transform", "").strip() for line in [*found, *asked])]


def test_commands_that_need_more_than_a_test_has_are_composed() -> None:
    from tests.composed import check_command

    for typed in unrun():
        check_command([word for word in shlex.split(typed) if word != "-m"], multirun=True)


def test_the_site_is_searched_from_its_folder_and_fetches_nothing() -> None:
    """The plugin `offline` fetches a script that runs workers in frames, unless one of that name is there."""
    site = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert "\n  polyfills: [iframe-worker.js]" in site
    assert "\n  - offline\n" in site
    assert "class extends EventTarget" in (ROOT / "docs" / "iframe-worker.js").read_text(encoding="utf-8")
    assert "http" not in (ROOT / "docs" / "iframe-worker.js").read_text(encoding="utf-8")


def test_the_reference_has_the_whole_public_face() -> None:
    listed = re.findall(r"^::: ctxexp\.(\w[\w.]*)$", (ROOT / "docs" / "reference.md").read_text(), flags=re.MULTILINE)
    assert sorted(listed) == sorted(name.removeprefix("ctxexp.") for name in PUBLIC)


@pytest.mark.parametrize("name", PUBLIC)
def test_what_is_public_says_what_it_is_by_an_example(name: str) -> None:
    module, _, attribute = name.rpartition(".")
    thing = getattr(importlib.import_module(module), attribute)
    if isinstance(thing, type | types.FunctionType) and module != "ctxexp.errors":  # they share one, of their base
        assert ">>> " in (thing.__doc__ or "")


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_local_links_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text) + re.findall(r'<img src="([^"]+)"', text):
        if not target.startswith(("http", "mailto")):
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CHANGELOG.md", *PLUGIN_PAGES], ids=lambda p: p.name)
def test_modules_and_files_that_are_named_exist(page: Path) -> None:
    """`ctxexp.Group`, `info.corpus.words`; `vectors/__init__.py`, from the root or the package, or a file by name."""

    text = re.sub(r"^```(?!$).*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    known = {p.name for p in (ROOT / "ctxexp").rglob("*.py")} | {f"{name}.py" for name in written()}
    for name in re.findall(r"`(ctxexp(?:_\w+)?(?:\.\w+)+)(?:\(.*?\))?`", text):
        pkgutil.resolve_name(name)
    for name in re.findall(r"`info\.([\w.]+)`", text):
        attrgetter(name)(run_info(fit_on="x"))
    for name in re.findall(r"`([\w/]+(?:\.py|/))`", text):
        assert (ROOT / name).exists() or (ROOT / "ctxexp" / name).exists() or name in known, name


def written() -> list[str]:
    """The files that the tutorial shows."""
    return [Path(name).stem for name in listings(ROOT / "plugins" / "README.md")]


def test_the_table_of_groups_names_all() -> None:
    text = (ROOT / "docs" / "options.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `(\w+)` \| ", text, flags=re.MULTILINE)) == set(GROUPS)
