"""A floor: the null distribution of cosines by layer, as an object and a file that one line reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ctxexp.errors import ConfigError, UnknownName
from ctxexp_compare.archive import read_archive, write_archive
from ctxexp_compare.floors.fit import TAILS, fit_rows, quantiles, tail_probability
from ctxexp_compare.floors.sample import WORDS, Rows

if TYPE_CHECKING:
    import pandas as pd

KIND, FORMAT = "floor", 1  # of the file
Length = float | tuple[float, float]
ADAPT_PAIRS = 100_000


@dataclass(frozen=True)
class Floor:
    """The cosines of unrelated words, and of unrelated sentences, in each layer of a model.

    Args:
        title: The model.
        text: The text that it was measured on.
        layers: The numbers of the layers.
        kinds: `words`, then poolings of sentences, the default one first.
        domains: The domains of the text; pairs are of one domain.
        coefficients: (kinds, layers, quantiles, terms) of `ctxexp_compare.floors.fit`.
        offsets: (domains, kinds, layers, quantiles) that a domain's own quantiles lie above.
        held_out: (kinds, layers) the largest error of a probability on sentences that it wasn't fitted to.
        lengths: Words of the shortest and of the longest sentence; others count as these.
    """

    title: str
    text: str
    layers: tuple[int, ...]
    kinds: tuple[str, ...]
    domains: tuple[str, ...]
    coefficients: np.ndarray
    offsets: np.ndarray
    held_out: np.ndarray
    lengths: tuple[int, int]

    def probability(
        self,
        cosine: npt.ArrayLike,
        *,
        length: Length | None = None,
        layer: int | None = None,
        pooling: str | None = None,
        domain: str | None = None,
    ) -> Any:
        """The probability that two unrelated words, or sentences, have such a cosine or a higher one.

        Args:
            cosine: The cosine, or an array of them.
            length: The two sentences' lengths in words, or one for both; None: two words.
            layer: The layer; None: the last.
            pooling: How sentences were pooled; None: the model's own way.
            domain: One of the floor's domains; None: all of them alike.

        Returns:
            A probability in [.0005, .9995] (beyond, it isn't known), or an array of them.

        Raises:
            ConfigError: No such layer, a pooling without lengths, or lengths of a floor of words alone.
            UnknownName: No such pooling or domain.

        Example:
            >>> import numpy as np
            >>> rng = np.random.default_rng(0)
            >>> floor = Floor.of_vectors(rng.normal(size=(400, 20)), rng.integers(5, 25, size=400))
            >>> bool(floor.probability(0.5, length=(12, 20)) < 0.05 < floor.probability(0.3, length=12))
            True
        """
        at = self._quantiles(length, layer, pooling, domain)
        probability = tail_probability(np.asarray(cosine, np.float64), at)
        return float(probability) if np.ndim(cosine) == 0 else probability

    def threshold(self, probability: float, **choices: Any) -> float:
        """The cosine that unrelated pairs reach with this probability: the inverse of `probability`.

        Args:
            probability: In [.0005, .9995].
            choices: `length`, `layer`, `pooling` and `domain` as `probability` takes them.

        Returns:
            The cosine.

        Raises:
            ConfigError: A probability beyond what is known.

        Example:
            >>> x = np.random.default_rng(0).normal(size=(400, 20))
            >>> floor = Floor.of_vectors(x, [10] * 400)
            >>> round(floor.probability(floor.threshold(0.05, length=10), length=10), 6)
            0.05
        """
        if not TAILS[-1] <= probability <= TAILS[0]:
            raise ConfigError(f"probability={probability}: expected {TAILS[-1]} to {TAILS[0]}; beyond, it isn't known")
        keys = (choices.pop(key, None) for key in ("length", "layer", "pooling", "domain"))
        at = self._quantiles(*keys)
        if choices:
            raise ConfigError(f"threshold has no argument {next(iter(choices))!r}")
        return float(np.interp(probability, TAILS[::-1], at[::-1]))

    def domain_range(self, cosine: float, **choices: Any) -> tuple[float, float]:
        """The lowest and the highest probability over the floor's domains: how far the kind of text moves it.

        Args:
            cosine: The cosine.
            choices: `length`, `layer` and `pooling` as `probability` takes them.

        Returns:
            Two probabilities; equal where the floor has one domain.

        Example:
            >>> x = np.random.default_rng(0).normal(size=(400, 20))
            >>> low, high = Floor.of_vectors(x, [10] * 400).domain_range(0.3, length=10)
            >>> low == high
            True
        """
        own = [self.probability(cosine, domain=name, **choices) for name in self.domains]
        return min(own), max(own)

    def adapt(
        self, vectors: npt.ArrayLike, lengths: Sequence[int], *, layer: int | None = None, pooling: str | None = None
    ) -> Floor:
        """The floor of a text of your own, for one layer and pooling, from its sentences' vectors: a domain moves
        probabilities by far more than a few hundred sentences leave open.

        Args:
            vectors: (n, dim), of 40 sentences or more; 400 make the error of a probability about .02.
            lengths: Words of each sentence, punctuation not counted.
            layer: The layer that they are of; None: the last.
            pooling: Their pooling; None: the model's own way.

        Returns:
            A floor of that layer and pooling alone.

        Example:
            >>> rng = np.random.default_rng(0)
            >>> floor = Floor.of_vectors(rng.normal(size=(400, 20)), [10] * 400)
            >>> own = floor.adapt(rng.normal(size=(400, 20)) + 1, [10] * 400)
            >>> own.threshold(0.5, length=10) > floor.threshold(0.5, length=10) + 0.2
            True
        """
        kind = self.kinds[self._kind(pooling or self.kinds[min(1, len(self.kinds) - 1)])]
        number = self.layers[self._layer(layer)]
        return replace(Floor.of_vectors(vectors, lengths, layer=number, pooling=kind), title=self.title)

    @classmethod
    def of_vectors(
        cls, vectors: npt.ArrayLike, lengths: Sequence[int], *, layer: int = 0, pooling: str = "mean"
    ) -> Floor:
        """The floor of one layer, from sentences' vectors in hand; see `adapt`.

        Raises:
            ConfigError: Fewer than 40 vectors, or not as many lengths.
        """
        x, n = np.asarray(vectors, np.float32), np.asarray(lengths, np.int64)
        if x.ndim != 2 or len(x) < 40 or n.shape != (len(x),) or not np.isfinite(x).all():
            raise ConfigError(
                f"expected finite vectors (n, dim) of 40 sentences or more and a length of each, got {x.shape} and "
                f"{n.shape}"
            )
        every = np.arange(len(x))
        rows = Rows(x[None], every, np.zeros(len(x), np.int64), n, np.full(len(x), -1))
        fit = fit_rows({pooling: rows}, 1, most=ADAPT_PAIRS)
        return cls("vectors", "own", (layer,), (pooling,), ("own",), *fit)

    def domain_error(self, *, layer: int | None = None, pooling: str | None = None) -> float:
        """How far off a probability of this floor can be in one of its domains, taken alone; NaN of a single domain."""
        if len(self.domains) < 2:
            return float("nan")
        kind, at = self._kind(pooling or WORDS), self._layer(layer)
        middle = float(np.sqrt(self.lengths[0] * self.lengths[1]))
        pooled = quantiles(self.coefficients[kind, at], None if self.kinds[kind] == WORDS else (middle, middle))
        own = pooled + self.offsets[:, kind, at]
        return float(np.abs(tail_probability(own, pooled) - TAILS).max())

    @property
    def frame(self) -> pd.DataFrame:
        """A row a kind and layer, sentences at the geometric mean of the lengths: median, the cosines that 5% and 1% of
        unrelated pairs reach, and the errors on held-out sentences and in a single domain."""
        import pandas as pd

        middle = float(np.sqrt(self.lengths[0] * self.lengths[1]))
        rows = []
        for i, kind in enumerate(self.kinds):
            for j, layer in enumerate(self.layers):
                at = quantiles(self.coefficients[i, j], None if kind == WORDS else (middle, middle))
                values = {f"exceeded_by_{p:g}": float(np.interp(p, TAILS[::-1], at[::-1])) for p in (0.5, 0.05, 0.01)}
                error = self.domain_error(layer=layer, pooling=kind)
                rows.append({"kind": kind, "layer": layer, **values, "held_out": self.held_out[i, j], "domains": error})
        return pd.DataFrame(rows)

    def _quantiles(
        self, length: Length | None, layer: int | None, pooling: str | None, domain: str | None
    ) -> np.ndarray:
        """Ascending (quantiles,)."""
        kind, at = self._kind(pooling or self._default_kind(length)), self._layer(layer)
        if self.kinds[kind] != WORDS and length is None:
            raise ConfigError(
                f"pooling={self.kinds[kind]}: sentences need their lengths in words, as in length=(12, 20)"
            )
        both = None if self.kinds[kind] == WORDS or length is None else self._clamped(length)
        result = quantiles(self.coefficients[kind, at], both)
        if domain is not None:
            if domain not in self.domains:
                raise UnknownName("domain", domain, self.domains)
            result = np.maximum.accumulate(result + self.offsets[self.domains.index(domain), kind, at])
        return result

    def _default_kind(self, length: Length | None) -> str:
        """Words without a length, the first pooling with one."""
        if length is None and WORDS in self.kinds:
            return WORDS
        if self.kinds == (WORDS,):
            raise ConfigError(f"length={length}: the floor of {self.title} is of words alone; leave length out")
        return next(kind for kind in self.kinds if kind != WORDS)

    def _clamped(self, length: Length) -> tuple[float, float]:
        pair = np.broadcast_to(np.asarray(length, np.float64), (2,))
        if not (pair >= 1).all():
            raise ConfigError(f"length={length}: expected words, 1 or more")
        a, b = np.clip(pair, *self.lengths).tolist()
        return a, b

    def _kind(self, name: str) -> int:
        if name not in self.kinds:
            raise UnknownName("pooling", name, self.kinds)
        return self.kinds.index(name)

    def _layer(self, layer: int | None) -> int:
        number = self.layers[-1] if layer is None else layer
        if number not in self.layers:
            raise ConfigError(f"layer={layer}: the floor of {self.title} has layers {list(self.layers)}")
        return self.layers.index(number)

    def save(self, path: Path | str) -> int:
        """Write the file, atomically; its size in bytes."""
        keys = ("title", "text", "layers", "kinds", "domains", "lengths")
        arrays = {
            "coefficients": self.coefficients.astype(np.float32),
            "offsets": self.offsets.astype(np.float16),
            "held_out": self.held_out.astype(np.float32),
        }
        return write_archive(Path(path), KIND, FORMAT, {key: getattr(self, key) for key in keys}, arrays)

    @classmethod
    def load(cls, path: Path | str) -> Floor:
        """The floor of a file.

        Args:
            path: A file that `ctxexp floor` wrote.

        Returns:
            The floor.

        Raises:
            DataError: The file is missing, damaged, or of another format.

        Example:
            >>> from tempfile import TemporaryDirectory
            >>> floor = Floor.of_vectors(np.random.default_rng(0).normal(size=(50, 8)), [10] * 50)
            >>> with TemporaryDirectory() as folder:
            ...     size = floor.save(f"{folder}/model.floor")
            ...     Floor.load(f"{folder}/model.floor").layers
            (0,)
        """
        return read_archive(Path(path).expanduser(), KIND, FORMAT, cls._of)

    @classmethod
    def _of(cls, meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> Floor:
        given: dict[str, Any] = {key: arrays[key].astype(np.float64) for key in ("coefficients", "offsets", "held_out")}
        plain: dict[str, Any] = {key: tuple(meta[key]) for key in ("layers", "kinds", "domains", "lengths")}
        floor = cls(title=meta["title"], text=meta["text"], **plain, **given)
        shape = (len(floor.kinds), len(floor.layers))
        if (floor.coefficients.shape[:2], floor.held_out.shape) != (shape, shape) or floor.offsets.shape[:3] != (
            len(floor.domains), *shape,
        ):  # fmt: skip
            raise ValueError("its arrays don't fit each other")
        return floor
