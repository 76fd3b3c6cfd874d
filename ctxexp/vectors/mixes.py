"""Mixes of layers: which layers a virtual layer averages, and how much each counts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeGuard

from ctxexp.errors import ConfigError, near

MIXES = {  # of a model with layers 0..L, 0 the input layer
    "last2": "the last two layers, L-1 and L",
    "first_last": "layers 1 and L, the outputs of the first and the last block",
    "flow_paper_last2": "layers 1 and L: what BERT-flow's code averages under the name of last-2",
    "scalar_mix": "all layers, weighted by the softmax of given weights, else alike (Peters et al. 2018, equation 1)",
}


@dataclass(frozen=True)
class Mix:
    """A virtual layer: the weighted mean of some layers' sentence vectors; the weights' sum is 1."""

    name: str
    layers: tuple[int, ...]
    weights: tuple[float, ...]

    def __str__(self) -> str:
        alike = len(set(self.weights)) == 1
        shares = "" if alike else " weighted " + ", ".join(f"{w:.3g}" for w in self.weights)
        return f"{self.name}: layer{'s' * (len(self.layers) > 1)} {', '.join(map(str, self.layers))}{shares}"


def check_mixes(mixes: Sequence[object]) -> None:
    """Raise ConfigError for a mix that no model could have; `layer_mixes` refuses layers out of a model's range."""
    for one in mixes:
        _parse(one, None)


def layer_mixes(names: Sequence[object], n_layers: int) -> list[Mix]:
    """The mixes of the config (names, lists of layers, or {scalar_mix: weights}) for a model with `n_layers` layers,
    the input layer 0 counted: 13 of BERT-base.

    Raises ConfigError for a layer that the model doesn't have, naming those that it has, and for a mix named twice.

    Example:
        >>> [str(mix) for mix in layer_mixes(["last2", [0, 3]], 13)]
        ['last2: layers 11, 12', 'layers_0_3: layers 0, 3']
    """
    mixes = [mix for name in names if (mix := _parse(name, n_layers))]
    counts = Counter(mix.name for mix in mixes)
    if twice := next((name for name, n in counts.items() if n > 1), None):
        raise ConfigError(f"sentence.mixes: {twice} is there twice")
    return mixes


def _parse(one: object, n_layers: int | None) -> Mix | None:
    """The mix; None while the model's number of layers isn't known."""
    weights: list[float] | None = None
    if isinstance(one, Mapping) and list(one) == ["scalar_mix"]:
        weights = one["scalar_mix"]
        one = "scalar_mix"
        if not isinstance(weights, list) or not weights or not all(map(_is_number, weights)):
            raise ConfigError(f"sentence.mixes: scalar_mix={weights!r}: expected a weight a layer, as in [0.5,1,0]")
    if isinstance(one, str):
        if one not in MIXES:
            raise ConfigError(f"sentence.mixes: no mix {one!r}{near(one, MIXES)}; or a list of layers, as in [[1,12]]")
        return None if n_layers is None else _named_mix(one, n_layers, weights)
    if not isinstance(one, list) or not one or not all(isinstance(i, int) and not isinstance(i, bool) for i in one):
        hint = "; a mix is a list of its own, as in sentence.mixes=[[1,4]]" if _is_number(one) else ""
        raise ConfigError(f"sentence.mixes: {one!r}: expected a name ({', '.join(MIXES)}) or a list of layers{hint}")
    if len(set(one)) < len(one):
        raise ConfigError(f"sentence.mixes: {one}: a layer is there twice")
    for i in one:
        if i < 0 or (n_layers is not None and i >= n_layers):
            raise ConfigError(
                f"sentence.mixes: no layer {i} (in {one}): "
                + (f"the model has layers 0 to {n_layers - 1}" if n_layers else "layers count from 0, the input layer")
                + (f"; its last is {n_layers - 1}" if n_layers and i < 0 else "")
            )
    return Mix("layers_" + "_".join(map(str, one)), tuple(one), (1 / len(one),) * len(one))


def _named_mix(name: str, n_layers: int, weights: list[float] | None) -> Mix:
    last = n_layers - 1
    if name == "scalar_mix":
        w = [0.0] * n_layers if weights is None else weights
        if len(w) != n_layers:
            raise ConfigError(f"sentence.mixes: scalar_mix has {len(w)} weights; the model has {n_layers} layers")
        s = [math.exp(weight - max(w)) for weight in w]
        return Mix(name, tuple(range(n_layers)), tuple(weight / sum(s) for weight in s))
    if last < 1:
        raise ConfigError(f"sentence.mixes: {name} needs layers above the input layer; the model has layer 0 only")
    layers = (last - 1, last) if name == "last2" else tuple(dict.fromkeys((1, last)))
    return Mix(name, layers, (1 / len(layers),) * len(layers))


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)
