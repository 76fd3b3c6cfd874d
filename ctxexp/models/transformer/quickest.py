"""A model's forward pass, by the way that is quickest on this processor: found by trying, not by belief.

torch hands float32 products to MKL, which runs at half of some processors' speed (AMD's Zen 5). oneDNN, with weights
that are laid out for it once, reaches twice that there, and little or no more than MKL elsewhere. The operator is the
one that `torch.compile` freezes models with; it is private, so a model is tried with and without it. GPT-2's activation
needs no trial.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import product
from typing import TYPE_CHECKING

import torch
from torch import nn

from ctxexp.errors import ConfigError
from ctxexp.models.choices import Linear

if TYPE_CHECKING:
    from transformers import PreTrainedModel
    from transformers.utils import ModelOutput

log = logging.getLogger("ctxexp")

ENOUGH = 50_000  # pieces to read from which on trying pays: it reads up to 8,000
TRIED = 512  # pieces of a trial
TRIES = 3  # of each way; its quickest counts
GAIN = 1.25  # how much quicker prepacked weights must be: what is chosen for less may be another way the next time
TOLERANCE = 1e-5  # of the two ways' hidden states, relative to a layer's largest value
MOST_BYTES = 4 << 30  # of weights that are laid out a second time

Layers = Mapping[nn.Module, Callable[[torch.Tensor], torch.Tensor]]  # what stands in for a layer's own forward


class QuickestPass:
    """Calls a model on the CPU by plain or prepacked linear layers, on one or on all of torch's threads.

    `ahead` is how many pieces are going to be read: with `linear="auto"` few of them are read the plain way, and many
    by the way that was quickest on the first of them. The model itself is left as it is.
    """

    def __init__(self, model: PreTrainedModel, linear: Linear) -> None:
        self.model, self.linear, self.ahead = model, linear, 0
        self._gelu = one_pass_gelu(model)
        self._layers: Layers = prepacked(model) if linear == "prepacked" else {}
        self._threads: int | None = None
        self._settled = False

    @property
    def made(self) -> dict[str, str]:
        """How vectors are made by now."""
        return {"linear": "prepacked" if self._layers else "plain"}

    def settle(self, linear: Linear) -> None:
        """Take this way from now on, without a trial. Raises ConfigError where it can't be had."""
        self._settled, self._layers = True, prepacked(self.model) if linear == "prepacked" else {}

    def __call__(self, ids: torch.Tensor) -> ModelOutput:
        """The model's output for `ids` (sentences, length), with hidden states."""
        if not self._settled and self.ahead >= ENOUGH:
            self._settled = True
            if ids.device.type == "cpu":
                self._settle(ids[: max(1, TRIED // ids.shape[1])])
        return self._through(ids, self._layers, self._threads or torch.get_num_threads())

    def _through(self, ids: torch.Tensor, layers: Layers, threads: int) -> ModelOutput:
        with _threads(threads), _standing_in({**self._gelu, **layers}):
            return self.model(input_ids=ids, output_hidden_states=True)

    def _settle(self, ids: torch.Tensor) -> None:
        """Chooses the way by trying each on these ids."""
        most, kinds = torch.get_num_threads(), [self._layers]
        if self.linear == "auto" and (packed := self._equal(ids)):
            kinds.append(packed)
        ways = list(product(range(len(kinds)), sorted({1, most})))
        took = dict.fromkeys(ways, float("inf"))
        for kind, threads in (len(ways) > 1) * TRIES * ways:
            began = time.perf_counter()
            self._through(ids, kinds[kind], threads)
            took[kind, threads] = min(took[kind, threads], time.perf_counter() - began)
        quickest = [min((took[kind, threads], threads) for threads in {1, most}) for kind in range(len(kinds))]
        best = len(kinds) - 1 if quickest[-1][0] * GAIN < quickest[0][0] else 0
        self._layers, self._threads = kinds[best], quickest[best][1]
        log.debug("linear layers %s, %d threads: seconds by way %s", self.made["linear"], self._threads, took)

    def _equal(self, ids: torch.Tensor) -> Layers:
        """The prepacked layers, if they can be had and give what the plain ones do; else none."""
        try:
            layers = prepacked(self.model, most=MOST_BYTES)
            ours = self._through(ids, layers, torch.get_num_threads()).hidden_states
        except (ConfigError, RuntimeError) as error:
            log.debug("%s", error)
            return {}
        theirs = self._through(ids, {}, torch.get_num_threads()).hidden_states
        same = all((a - b).abs().max() <= TOLERANCE * b.abs().max() for a, b in zip(ours, theirs, strict=True))
        return layers if same else {}


def prepacked(model: PreTrainedModel, *, most: int | None = None) -> Layers:
    """A forward with prepacked weights for each float32 linear layer of a model on the CPU.

    Raises ConfigError where it can't be had, or where the weights take more than `most` bytes.
    """
    from transformers.pytorch_utils import Conv1D  # GPT-2's linear layer, its weight transposed

    found = {
        layer: layer.weight.T.contiguous() if type(layer) is Conv1D else layer.weight
        for layer in model.modules()
        if type(layer) in (nn.Linear, Conv1D) and "forward" not in vars(layer)  # someone stands in for it already
    }
    weights = [weight for weight in found.values() if (weight.dtype, weight.device.type) == (torch.float32, "cpu")]
    if not found or len(weights) < len(found):
        raise ConfigError(
            f"linear=prepacked: expected a model with linear layers in float32 on a CPU, got {type(model).__name__} "
            f"in {model.dtype} on {model.device}; use linear=auto"
        )
    if most is not None and sum(weight.nbytes for weight in weights) > most:
        raise ConfigError(f"linear=auto: {type(model).__name__} is too large to lay its weights out a second time")
    try:
        return {layer: _stand_in(weight, layer.bias) for layer, weight in found.items()}
    except (AttributeError, RuntimeError) as error:  # the operator is private
        raise ConfigError(
            f"linear=prepacked: torch {torch.__version__} has no such layers on this processor ({error}); use "
            "linear=plain"
        ) from error


def one_pass_gelu(model: PreTrainedModel) -> Layers:
    """A forward in one pass over memory for each of a float32 model's GELU layers that transformers writes in eight.

    It is the same formula, and the result within 1e-6; such a layer takes a quarter of GPT-2's time otherwise.
    """
    from transformers.activations import NewGELUActivation

    quick = partial(nn.functional.gelu, approximate="tanh")
    return {m: quick for m in model.modules() if type(m) is NewGELUActivation and model.dtype == torch.float32}


def _stand_in(weight: torch.Tensor, bias: torch.Tensor | None) -> Callable[[torch.Tensor], torch.Tensor]:
    """`x -> x @ weight.T + bias` by oneDNN, the weight laid out for it."""
    laid_out, operator = torch.ops.mkldnn._reorder_linear_weight(weight), torch.ops.mkldnn._linear_pointwise
    return lambda x: operator(x, laid_out, bias, "none", [], "")


@contextmanager
def _standing_in(layers: Layers) -> Iterator[None]:
    """With these functions in the place of the layers' own forward."""
    for layer, forward in layers.items():
        vars(layer)["forward"] = forward
    try:
        yield
    finally:
        for layer in layers:
            del vars(layer)["forward"]


@contextmanager
def _threads(n: int) -> Iterator[None]:
    """With so many of torch's threads."""
    before = torch.get_num_threads()
    if n == before:
        yield
        return
    torch.set_num_threads(n)
    try:
        yield
    finally:
        torch.set_num_threads(before)
