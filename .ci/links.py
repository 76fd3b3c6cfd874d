"""Gives the distributions in a copy of the checkout their links: `python .ci/links.py COPY REPOSITORY TAG`.

An index shows a README without the files around it, and the checkout doesn't know where it is published. So the
repository's address, https://github.com/OWNER/NAME, becomes each project's `[project.urls]`, and links of READMEs that
lead to files lead to those of the tag.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

LINK = re.compile(r"(\]\(|<img src=\")(?!https?:|#|mailto:)([^)\"#]+)")


def absolute(text: str, folder: Path, root: Path, repository: str, tag: str) -> str:
    """The text with its links to files, as seen from the folder, on the repository's site."""

    def link(found: re.Match[str]) -> str:
        path = (folder / found[2]).resolve()
        if not path.exists():
            raise SystemExit(f"{folder}/README.md links to {found[2]}, which isn't there")
        kind = "raw" if path.suffix in {".png", ".svg"} else "blob" if path.is_file() else "tree"
        return f"{found[1]}{repository}/{kind}/{tag}/{path.relative_to(root).as_posix()}"

    return LINK.sub(link, text)


def main(copy: str, repository: str, tag: str) -> None:
    root, repository = Path(copy).resolve(), repository.rstrip("/")
    urls = {
        "Homepage": repository,
        "Documentation": f"{repository}/tree/{tag}/docs",
        "Changelog": f"{repository}/blob/{tag}/CHANGELOG.md",
        "Issues": f"{repository}/issues",
    }
    table = "\n[project.urls]\n" + "".join(f'{name} = "{url}"\n' for name, url in urls.items())
    readmes = {}
    for project in [root / "pyproject.toml", *root.glob("plugins/ctxexp-*/pyproject.toml")]:
        project.write_text(project.read_text(encoding="utf-8") + table, encoding="utf-8")
        readme = project.parent / "README.md"
        readmes[readme] = absolute(readme.read_text(encoding="utf-8"), project.parent, root, repository, tag)
    for readme, text in readmes.items():
        readme.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
