"""joblib's worker processes end with the process that started them, with a job or without."""

from __future__ import annotations

import subprocess
import sys
import time

import psutil
import pytest

DRIVER = """
import time
from joblib import Parallel, delayed
from ctxexp.files.process import watch_parent_in_workers

watch_parent_in_workers()
print(*set(Parallel(n_jobs=2, backend="loky")(delayed(__import__("os").getpid)() for _ in range(8))), flush=True)
time.sleep(600)
"""


def works(process: psutil.Process) -> bool:
    """Whether it runs; one that ended may stay a zombie until the machine's first process looks after it."""
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


@pytest.mark.skipif(sys.platform == "win32", reason="a killed process's children have no new parent there")
def test_idle_workers_end_with_a_killed_parent() -> None:
    """No job of ours ran in them: left to joblib they would wait for another one for five minutes."""
    driver = subprocess.Popen([sys.executable, "-c", DRIVER], stdout=subprocess.PIPE, text=True)
    assert driver.stdout is not None
    named = [psutil.Process(int(pid)) for pid in driver.stdout.readline().split()]
    workers = {*named, *(child for child in psutil.Process(driver.pid).children() if "--pipe" in child.cmdline())}
    assert len(workers) == 2
    driver.kill()
    driver.wait()
    deadline = time.monotonic() + 30
    while (alive := [worker for worker in workers if works(worker)]) and time.monotonic() < deadline:
        time.sleep(0.1)
    for worker in alive:
        worker.kill()
    assert not alive
