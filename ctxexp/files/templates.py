"""HTML pages from templates that lie beside their code."""

from __future__ import annotations


def render_page(package: str, name: str, **values: object) -> str:
    """The page `name` of the package with these values filled in, HTML-escaped."""
    from jinja2 import Environment, PackageLoader

    pages = Environment(loader=PackageLoader(package, ""), autoescape=True, trim_blocks=True, lstrip_blocks=True)
    return pages.get_template(name).render(values)
