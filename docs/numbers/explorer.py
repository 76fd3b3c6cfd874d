"""Make the picture of the word explorer anew: a word's occurrences in the last layers of the three small models."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from docs.numbers.part import ROOT
from tests.browser import headless

COMMAND = "python -m ctxexp -m model=bert,gpt2,elmo"
WORD, MARKED = "bank", 2  # the occurrence in the list, from 1, that is ringed in every plane
PICTURE = ROOT / "docs" / "explorer.png"

CHOOSE = """const select = document.getElementById('word');
select.value = [...select.options].find(o => o.textContent.startsWith(arguments[0] + ' ')).value;
select.dispatchEvent(new Event('change'));
document.querySelector('#occurrences li:nth-child(' + arguments[1] + ')').focus({preventScroll: true});
document.getElementById('explorer').scrollIntoView();
window.scrollBy(0, -80);  // below what stays at the page's top"""
BOX = """const planes = document.getElementById('clouds').getBoundingClientRect();
return [0, document.getElementById('explorer').getBoundingClientRect().top - 10, planes.right + 20, planes.bottom]"""


def shoot(report: Path, picture: Path, profile: Path) -> None:
    """The explorer of a report, as a browser shows it."""
    from PIL import Image

    with headless(profile, "1200,1100") as browser:
        browser.get(report.as_uri())
        browser.execute_script(CHOOSE, WORD, MARKED)
        browser.implicitly_wait(5)
        browser.find_element("css selector", "#clouds .plot .points path")
        shown = Image.open(io.BytesIO(browser.get_screenshot_as_png()))
        left, top, right, bottom = (round(at) for at in browser.execute_script(BOX))
        shown.crop((left, top, right, bottom)).convert("RGB").save(picture, optimize=True)


if __name__ == "__main__":
    with TemporaryDirectory() as folder, TemporaryDirectory() as profile:
        words = [sys.executable, *COMMAND.split()[1:]]
        subprocess.run(words, cwd=folder, check=True)
        (report,) = Path(folder).glob("mlruns/results/*/summary/report.html")
        shoot(report, PICTURE, Path(profile))
