"""`transform=flow`: the normalising flow of BERT-flow (Li et al. 2020), fitted by maximum likelihood on the rows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Self

import numpy as np
from annotated_types import Ge, Gt

from ctxexp import Transform
from ctxexp.errors import TransformError
from ctxexp.models import resolve_device

if TYPE_CHECKING:
    import torch

FIRST_ROWS = 4096  # that set the actnorms; Glow: "an initial minibatch"
CHUNK = 256  # rows that are mapped or hashed at a time: few enough to stay in the processor's cache
POINTS = 100  # of the loss that `record` gives
Count = Annotated[int, Ge(1)]


class Flow(Transform):
    """Rows mapped to a standard normal by an invertible network, `AdditiveFlow` of the module `network`.

    `levels`, `depth`, `width` are the paper's 2, 3, 32 (its released default has 3 levels); `epochs` passes over the
    rows at Adam's learning rate `rate` are its 1 and 1e-3 on the target's sentences, .15 and 2e-5 on NLI's. `batch`
    rows a step; full batches only, so that up to `batch` - 1 rows sit out of an epoch, others each time. `max_rows`
    fits on so many rows, drawn at random. Same rows, in whatever order, and same `seed`: the same flow.

    After `fit`, `network` is the flow and `loss_curve` a float a step: mean negative log-likelihood of the step's rows
    in nats a dimension. Raises TransformError for rows that are too few (it
    needs two batches, and as many numbers as the flow has weights) or not finite, and if the loss stops being finite.

    levels: of which each but the last sends half of its columns to the base; the released default is 3
    depth: steps a level: actnorm, fixed random permutation, additive coupling
    width: of the couplings' hidden layers
    rate: Adam's learning rate
    batch: rows a step
    max_rows: fit on so many rows drawn at random; null: all
    """

    def __init__(
        self,
        *,
        levels: Count = 2,
        depth: Count = 3,
        width: Count = 32,
        epochs: Annotated[float, Ge(0)] = 1.0,  # 0: actnorms only
        rate: Annotated[float, Gt(0)] = 1e-3,
        batch: Count = 32,
        max_rows: Count | None = None,
        seed: int = 0,
        device: str = "auto",
    ) -> None:
        self.levels, self.depth, self.hidden = levels, depth, width
        self.epochs, self.rate, self.batch, self.max_rows, self.seed = epochs, rate, batch, max_rows, seed
        self.device = device
        self.loss_curve: list[float] = []

    def fit(self, x: np.ndarray) -> Self:
        import torch

        with torch.inference_mode(False), torch.enable_grad():  # whatever the caller's mode
            return self._fit(x)

    def _fit(self, x: np.ndarray) -> Self:
        import torch

        from ctxexp_measures.calibration.flow import network as flow

        generator = torch.Generator().manual_seed(self.seed)
        try:
            network = flow.AdditiveFlow(
                x.shape[1], levels=self.levels, depth=self.depth, width=self.hidden, generator=generator
            )
        except ValueError as error:
            raise TransformError(f"{error}; take fewer levels (transform.levels)") from error
        weights = sum(w.numel() for w in network.parameters())
        rows = _by_content(x)  # so that the fit doesn't depend on their order
        rows = rows[torch.randperm(len(rows), generator=generator).numpy()][: self.max_rows]
        self._check_enough(rows, x.shape[1], weights)
        first = torch.from_numpy(x[np.sort(rows[:FIRST_ROWS])])
        if not bool(torch.isfinite(first).all()):
            raise TransformError("the rows hold NaN or infinite values; a flow needs finite ones")
        network.initialise(first)
        network.to(resolve_device(self.device))
        self.network, self.loss_curve = network, []
        n_steps = math.ceil(self.epochs * (len(rows) // self.batch))
        for loss in flow.likelihood_steps(network, self._batches(x, rows, n_steps, generator), rate=self.rate):
            self.loss_curve.append(loss)
            if not math.isfinite(loss):
                raise TransformError(
                    f"the loss became {loss} at step {len(self.loss_curve)} of {n_steps} (before: "
                    f"{', '.join(f'{v:.4g}' for v in self.loss_curve[-4:-1]) or 'none'}); try a lower rate than "
                    f"transform.rate={self.rate:g}, a larger transform.batch, or a smaller transform.depth"
                )
        return self

    def apply(self, x: np.ndarray) -> np.ndarray:
        import torch

        out = np.empty(x.shape, np.float32)
        device = self.network.center.device
        with torch.no_grad():
            for at in range(0, len(x), CHUNK):
                z, _ = self.network(torch.from_numpy(x[at : at + CHUNK].copy()).to(device))
                out[at : at + CHUNK] = z.cpu().numpy()
        return out

    def record(self) -> dict[str, Sequence[object]]:
        """The loss in at most 100 stretches of training: their last `step`, `rows` seen by then, mean `loss`."""
        parts = np.array_split(np.array(self.loss_curve), min(POINTS, len(self.loss_curve)) or 1)
        ends = np.cumsum([len(part) for part in parts]).tolist() if self.loss_curve else []
        losses = [float(part.mean()) for part in parts] if self.loss_curve else []
        return {"step": ends, "rows": [end * self.batch for end in ends], "loss": losses}

    def _check_enough(self, rows: np.ndarray, dim: int, weights: int) -> None:
        least = max(2 * self.batch, math.ceil(weights / dim))
        if len(rows) < least:
            raise TransformError(
                f"{len(rows)} rows of {dim} columns are too few to fit a flow: it needs {least}: two batches of "
                f"{self.batch}, and as many numbers as its {weights} weights; give it more text, or a smaller "
                "flow (transform.width, transform.depth)"
            )

    def _batches(
        self, x: np.ndarray, rows: np.ndarray, n_steps: int, generator: torch.Generator
    ) -> Iterator[torch.Tensor]:
        """`n_steps` batches, each row at most once between two shuffles."""
        import torch

        device = self.network.center.device
        per_epoch = len(rows) // self.batch
        for step in range(n_steps):
            at = step % per_epoch * self.batch
            if at == 0:
                order = rows[torch.randperm(len(rows), generator=generator).numpy()]
            yield torch.from_numpy(x[order[at : at + self.batch]]).to(device)


def _by_content(x: np.ndarray) -> np.ndarray:
    """Row numbers (n,) in an order that only their content decides: ascending by a 64-bit hash of their bits."""
    odd = np.random.default_rng(0).integers(0, 2**63, x.shape[1], dtype=np.uint64) * 2 + 1
    keys = np.empty(len(x), np.uint64)
    for at in range(0, len(x), CHUNK):
        bits = np.ascontiguousarray(x[at : at + CHUNK], np.float32).view(np.uint32)
        keys[at : at + CHUNK] = (bits * odd).sum(axis=1, dtype=np.uint64)  # modulo 2^64
    return np.argsort(keys, kind="stable")
