"""What the site needs beyond mkdocs.yml: pages that lie elsewhere, notebooks, quotes, links to sources, formulas."""

from __future__ import annotations

import os
import re
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

from latex2mathml.converter import convert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from nbconvert import MarkdownExporter

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT))  # the command mkdocs hasn't got the folder that it is typed in

from ctxexp import progress  # noqa: E402
from ctxexp.command import registry  # noqa: E402
from ctxexp.command.cli import run_command_line  # noqa: E402
from ctxexp.plugins.registry import GROUPS  # noqa: E402
from docs.numbers import atlas, tables  # noqa: E402
from docs.numbers.steps import STEPS  # noqa: E402

BOOKS = sorted(ROOT.glob("docs/notebooks/*.ipynb"))
# Where the site has what is read outside of docs/ too: a source and its page.
PAGES = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "README.md": "index.md",
    "ctxexp/models/minis/CARD.md": "minis.md",
    "plugins/README.md": "plugins/index.md",
    **{
        f"plugins/{p.parent.name}/README.md": f"plugins/{p.parent.name}.md"
        for p in ROOT.glob("plugins/ctxexp-*/README.md")
    },
    **{f"docs/notebooks/{book.name}": f"notebooks/{book.stem}.md" for book in BOOKS},
    **{f"docs/atlas/{card.name}": f"atlas/{card.stem}.md" for card in ROOT.glob("docs/atlas/*.json")},
}
HELP = re.compile(r"<!-- what `ctxexp --help` says.*?-->")
SOURCES = {page: source for source, page in PAGES.items() if source != "README.md"}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that lie elsewhere, and each notebook as Markdown with its pictures."""
    for page, source in SOURCES.items():
        if source.endswith(".md"):
            files.append(File.generated(config, page, abs_src_path=str(ROOT / source)))
            continue
        if source.endswith(".json"):
            files.append(File.generated(config, page, content=atlas.card_page(atlas.read_row(ROOT / source))))
            continue
        text, made = MarkdownExporter().from_filename(ROOT / source, {"output_files_dir": Path(source).stem})
        files.append(File.generated(config, page, content=re.sub(r"\x1b\[[\d;]*m", "", text)))
        for name, picture in made["outputs"].items():
            files.append(File.generated(config, f"notebooks/{name}", content=picture))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links as the site has them, formulas as browsers draw them."""
    here = page.file.src_uri
    folder = (ROOT / SOURCES.get(here, f"docs/{here}")).parent

    def link(found: re.Match[str]) -> str:
        text, target, anchor = found.groups()
        at = os.path.relpath(folder / target, ROOT).replace(os.sep, "/")
        uri = PAGES.get(at) or at.removeprefix("docs/")
        if uri in files.src_uris:
            return f"[{text}]({os.path.relpath(uri, Path(here).parent)}{anchor or ''})"
        if (folder / target).exists():  # a file of the source, which the site hasn't got
            return f"[{text}]({config.repo_url.rstrip('/')}/blob/main/{at})" if config.repo_url else text
        return found[0]

    markdown = HELP.sub(lambda _: help_pages(), markdown)
    if here == "measures/court.md":
        markdown = with_quotes(markdown)
    markdown = re.sub(r"\[([^\[\]]*)\]\((?!https?:|mailto:|#)([^()#\s]+)(#[^()\s]*)?\)", link, markdown)
    return re.sub(r"^```math\n(.*?)^```$", formula, markdown, flags=re.MULTILINE | re.DOTALL)


def with_quotes(page: str) -> str:
    """The verdicts with the papers' own words, which the source has beside the page alone."""
    numbers = STEPS["court"].read()
    return page.replace(tables.court(numbers), tables.court(numbers, quotes=True))


def help_pages() -> str:
    """What `--help` says of each group, then of each verb."""
    groups = [(f"`{group}`", ["--help", group]) for group in GROUPS]
    verbs = [(f"`ctxexp {verb}`", [verb, "--help"]) for verb in registry().names("command")]
    progress.WIDTH = 84
    parts = []
    for title, words in (*groups, *verbs):
        with redirect_stdout(StringIO()) as text:
            run_command_line(words)
        parts.append(f"## {title}\n\n```text\n{text.getvalue().strip()}\n```")
    return "\n\n".join(parts)


def formula(found: re.Match[str]) -> str:
    """A display formula: MathML, which every browser draws without a script."""
    return f'<div class="formula">{convert(found[1].strip(), display="block")}</div>'
