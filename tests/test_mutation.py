"""The table of benchmarks/mutation.py, from verdicts as mutmut writes them."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def test_the_table_counts_what_was_tried_and_noticed(tmp_path: Path) -> None:
    """Exit codes: 1 a test failed, 0 none did, 33 no test calls it, others (a timeout) are noticed; None: not tried."""
    script = runpy.run_path(str(ROOT / "benchmarks" / "mutation.py"))
    folder = tmp_path / "mutants" / "ctxexp" / "maths"
    folder.mkdir(parents=True)
    codes = {f"ctxexp.maths.geometry.x_f__mutmut_{i}": code for i, code in enumerate([1, 1, 36, 0, 33, None])}
    (folder / "geometry.py.meta").write_text(json.dumps({"exit_code_by_key": codes}))
    assert script["verdicts"](tmp_path) == codes
    lines = list(script["table"](codes, {"ctxexp.maths.geometry.x_f__mutmut_3", "ctxexp.maths.geometry.x_f__mutmut_0"}))
    assert lines[2] == "| maths | 6 | 5 | 3 | 1 | 1 | 0.600 | 0.750 |"
    assert lines[-2] == "| baselines | 0 | 0 | 0 | 0 | 0 | - | - |"
    assert lines[-1] == "| all | 6 | 5 | 3 | 1 | 1 | 0.600 | 0.750 |"


def test_each_harmless_mutant_has_a_reason_and_a_line() -> None:
    """A reason that names a line or a function of yesterday is taken off with it."""
    reasons = runpy.run_path(str(ROOT / "benchmarks" / "mutation.py"))["reasons"]()
    for change, why in reasons.items():
        assert why.strip(), change
        room, module, *_ = *owners, function = change.function.split(".")
        file = ROOT / "ctxexp" / f"{room}.py"
        file = file if file.exists() else file.with_suffix("") / f"{module}.py"
        file = file if file.exists() else file.with_name("__init__.py")
        text = " ".join(file.read_text(encoding="utf-8").split())
        assert " ".join(change.line.split()) in text, change
        assert f"def {function}(" in text, change
        assert all(f"class {name}" in text for name in owners if name.strip("_")[0].isupper()), change


def test_slow_tests_that_are_left_out_exist() -> None:
    for test in runpy.run_path(str(ROOT / "benchmarks" / "mutation.py"))["SLOW"]:
        file, _, function = test.partition("::")
        assert f"def {function}" in (ROOT / file).read_text(encoding="utf-8"), test
