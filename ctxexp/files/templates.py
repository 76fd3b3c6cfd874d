"""HTML pages that lie beside the code which fills them."""

from __future__ import annotations


def filled(package: str, name: str, **values: object) -> str:
    """The page `name` of the package with these values, which come out as the text that they are."""
    from jinja2 import Environment, PackageLoader

    pages = Environment(loader=PackageLoader(package, ""), autoescape=True, trim_blocks=True, lstrip_blocks=True)
    return pages.get_template(name).render(values)
