"""Vectors of texts in a file, a row each."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

SUFFIXES = (".npy", ".npz", ".safetensors", ".parquet")
NAMES = ("embeddings", "embedding", "vectors", "vector", "sentence_embedding")
TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "I64": "<i8", "I32": "<i4"}


def read_matrix(path: Path) -> np.ndarray | None:
    """The vectors (n, dim) that a file holds; None where it holds other arrays, as of layers or tokens.

    `.npy`; `.npz` and `.safetensors` with one array of two axes, or one by a usual name; `.parquet` with a column of
    lists by a usual name. Raises ValueError or OSError for a file that can't be read.
    """
    arrays = _arrays(path)
    flat = {name: x for name, x in arrays.items() if x.ndim == 2 and np.issubdtype(x.dtype, np.floating)}
    name = next((name for name in (*NAMES, *flat) if name in flat), None)
    if name is None or (name not in NAMES and (len(flat) > 1 or "lengths" in arrays)):
        return None
    if not np.isfinite(flat[name]).all():
        raise ValueError("it holds NaN or infinite numbers")
    return flat[name]


def _arrays(path: Path) -> dict[str, np.ndarray]:
    if path.suffix == ".npy":
        return {NAMES[0]: np.load(path, allow_pickle=False)}
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as file:
            return dict(file)
    if path.suffix == ".safetensors":
        return read_tensors(path)[0]
    import pandas as pd

    table = pd.read_parquet(path)
    names = [name for name in NAMES if name in table.columns and "layer" not in table.columns]
    return {name: np.stack(table[name].to_list()) for name in names[:1]}


def read_tensors(path: Path) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """The tensors of a safetensors file, bfloat16, which numpy lacks, as float32; and its metadata."""
    content = path.read_bytes()
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    metadata, arrays = header.pop("__metadata__", {}), dict[str, np.ndarray]()
    for name, entry in header.items():
        if entry["dtype"] not in TYPES:
            continue
        start, end = entry["data_offsets"]
        x = np.frombuffer(content[8 + size + start : 8 + size + end], TYPES[entry["dtype"]])
        if entry["dtype"] == "BF16":
            x = (x.astype(np.uint32) << 16).view(np.float32)
        arrays[name] = x.reshape(entry["shape"])
    return arrays, metadata
