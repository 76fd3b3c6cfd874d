"""A headless browser, for what only one can tell of a page."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest


@contextmanager
def headless(profile: Path, size: str = "1200,900") -> Iterator[Any]:
    """A Chromium that selenium drives and whose console can be read; the test is skipped where there is none."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed: pip install selenium")
    program = next((p for n in ("chromium", "chromium-browser", "google-chrome") if (p := shutil.which(n))), None)
    driver = shutil.which("chromedriver")
    if not program or not driver:
        pytest.skip("no chromium and chromedriver on this machine")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    flags = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")
    for flag in (*flags, f"--user-data-dir={profile}", f"--window-size={size}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    try:
        yield browser
    finally:
        browser.quit()


def texts(browser: Any, selector: str) -> list[str]:
    """The texts of the elements that match, as they are seen, read in one step: a page that replaces them meanwhile
    can't leave stale ones."""
    script = "return [...document.querySelectorAll(arguments[0])].map(each => each.innerText)"
    return browser.execute_script(script, selector)


def wait_until(true: Callable[[], object], seconds: float = 20) -> None:
    """Return as soon as it is; AssertionError after that time. What a page replaces while it is read isn't true yet."""
    from selenium.common.exceptions import StaleElementReferenceException

    deadline = time.monotonic() + seconds
    while True:
        with suppress(StaleElementReferenceException):
            if true():
                return
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.05)
