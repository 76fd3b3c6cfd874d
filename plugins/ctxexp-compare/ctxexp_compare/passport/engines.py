"""Exported models that are run here: ONNX Runtime and OpenVINO."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ctxexp.errors import DataError, ModelError
from ctxexp.models import TokenStates

Vectors = tuple[list[np.ndarray], list[int] | None]


def run_onnx(path: Path, states: Sequence[TokenStates]) -> Vectors:
    """Every output of three axes of an ONNX model, for each sentence's tokens. Raises ModelError without the engine."""
    try:
        import onnxruntime  # type: ignore[import-not-found,unused-ignore]
    except ModuleNotFoundError as error:
        raise ModelError(f"{path.name} is run by ONNX Runtime: pip install onnxruntime") from error
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = [one.name for one in session.get_inputs()]
    vectors = [_stack(session.run(None, _inputs(names, own.ids, path)), path) for own in states]
    return vectors, None


def run_openvino(path: Path, states: Sequence[TokenStates]) -> Vectors:
    """Every output of three axes of an OpenVINO model, likewise."""
    try:
        import openvino  # type: ignore[import-not-found,unused-ignore]
    except ModuleNotFoundError as error:
        raise ModelError(f"{path.name} is run by OpenVINO: pip install openvino") from error
    # float32 throughout: some processors compute in half precision otherwise
    model = openvino.Core().compile_model(str(path), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    names = [one.any_name for one in model.inputs]
    vectors = []
    for own in states:
        out = model(_inputs(names, own.ids, path))
        vectors.append(_stack([out[i] for i in range(len(model.outputs))], path))
    return vectors, None


def _inputs(names: Sequence[str], ids: np.ndarray, path: Path) -> dict[str, np.ndarray]:
    known = {
        "input_ids": ids[None].astype(np.int64),
        "attention_mask": np.ones((1, len(ids)), np.int64),
        "token_type_ids": np.zeros((1, len(ids)), np.int64),
        "position_ids": np.arange(len(ids), dtype=np.int64)[None],
    }
    if unknown := [name for name in names if name not in known]:
        raise DataError(f"{path.name} asks for {', '.join(unknown)}; expected inputs among {', '.join(known)}")
    return {name: known[name] for name in names}


def _stack(outputs: Sequence[Any], path: Path) -> np.ndarray:
    """(layers, tokens, columns) of outputs (1, tokens, columns); others, such as a pooler's, are passed over."""
    arrays = [np.asarray(x) for x in outputs]
    layers = [x[0] for x in arrays if x.ndim == 3 and len(x) == 1]
    if not layers or len({x.shape for x in layers}) > 1:
        raise DataError(
            f"{path.name} has outputs of shapes {[x.shape for x in arrays]}; expected (1, tokens, columns) of "
            "each layer"
        )
    return np.stack(layers)
