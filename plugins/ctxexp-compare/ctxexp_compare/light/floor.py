"""A floor: the null distribution of cosines by layer, as an object and a JSON file that any language reads."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .fit import TAIL, TAILS, fit_rows, quantiles, tail_probability
from .pairs import WORDS, Rows

FORMAT = "ctxexp floor 3"  # of the file: `floor.schema.json` beside this one
Length = float | tuple[float, float]
OWN_PAIRS = 100_000
FEWEST = 40  # sentences of a domain: 780 pairs
ALLOWED = 0.02  # by which what a carried threshold lets through may be off
IN_KNOWN = ALLOWED / 2  # in the floor's own domains: others differ more


@dataclass(frozen=True)
class Carried:
    """A cosine of one model in another.

    Args:
        cosine: The cosine that as many unrelated pairs reach; NaN where it can't be carried.
        low: The lower end of its interval, by kind of text and by the sentences that the floors know.
        high: The upper end.
        share: The share of unrelated pairs that reach either.
        domain: The domain in which the shares of both differ the most.
        shares: The shares there, in the first model and in the other.
        reason: Why it can't be carried; empty where it can.
    """

    cosine: float
    low: float
    high: float
    share: float
    domain: str = ""
    shares: tuple[float, float] = (float("nan"), float("nan"))
    reason: str = ""


@dataclass(frozen=True)
class Floor:
    """The cosines of unrelated words, and of unrelated sentences, in each layer of a model.

    Args:
        title: The model.
        text: The text that it was measured on.
        layers: The numbers of the layers.
        kinds: `words`, then poolings of sentences, the default one first.
        domains: The domains of the text.
        coefficients: (kinds, layers, quantiles, terms) of `fit`, of pairs of one domain.
        across: The same of pairs of two domains; None where there is one.
        offsets: (domains, kinds, layers, quantiles, 2) that a domain's own quantiles lie above, of all its pairs and at
            their lengths.
        held_out: (kinds, layers) the largest error of a probability up to .1 on sentences that it wasn't fitted to.
        lengths: Words of the shortest and of the longest sentence; others count as these.
    """

    title: str
    text: str
    layers: tuple[int, ...]
    kinds: tuple[str, ...]
    domains: tuple[str, ...]
    coefficients: np.ndarray
    across: np.ndarray | None
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
        across: bool = False,
    ) -> Any:
        """The probability that two unrelated sentences, or words, have such a cosine or a higher one.

        Args:
            cosine: The cosine, or an array of them.
            length: The two sentences' lengths in words, or one for both; None: two sentences of the text, as they come.
            layer: The layer; None: the last.
            pooling: How sentences were pooled, or `words` for two words; None: the model's own way, words where the
                floor has no sentences.
            domain: One of the floor's domains; None: all of them alike.
            across: Of two sentences of two domains, in the place of one.

        Returns:
            A probability in [.0005, .9995] (beyond, it isn't known), or an array of them.

        Raises:
            ValueError: No such layer, pooling or domain, or `across` in a floor of one domain.

        Example:
            >>> import numpy as np
            >>> rng = np.random.default_rng(0)
            >>> floor = Floor.of_vectors(rng.normal(size=(400, 20)), rng.integers(5, 25, size=400))
            >>> bool(floor.probability(0.5, length=(12, 20)) < 0.05 < floor.probability(0.3))
            True
        """
        probability = tail_probability(
            np.asarray(cosine, np.float64), self._quantiles(length, layer, pooling, domain, across)
        )
        return float(probability) if np.ndim(cosine) == 0 else probability

    def carry(
        self, other: Floor, cosine: float, *, layer: int | None = None, pooling: str | None = None, across: bool = False
    ) -> Carried:
        """The cosine that lets through as many unrelated pairs in another model as this one does here.

        Args:
            other: The other model's floor, of the same text.
            cosine: The cosine in this floor's model.
            layer: The layer here; None: the last. Of the other floor it is always the last.
            pooling: The pooling here; None: the model's own way. In the other floor it is always that.
            across: Of pairs of two domains, in the place of one.

        Returns:
            The cosine, with a reason in its place where fewer than .0005 or more than .1 of the pairs reach it, or
            where in one of the domains the other model would let through a share that differs by more than .01: in a
            domain that the floors don't know it may be twice that.

        Raises:
            ValueError: Floors of other domains.

        Example:
            >>> x = np.random.default_rng(0).normal(size=(400, 20))
            >>> a, b = Floor.of_vectors(x), Floor.of_vectors(x + 0.3)
            >>> carried = a.carry(b, 0.4)
            >>> bool(carried.low < carried.cosine < carried.high)
            True
            >>> abs(b.probability(carried.cosine) - carried.share) < 1e-9
            True
        """
        if self.domains != other.domains:
            raise ValueError(f"floors of {self.text} and of {other.text}: expected the same texts, as text= names them")
        here: dict[str, Any] = {"layer": layer, "pooling": pooling}
        share = self.probability(cosine, across=across, **here)
        error = max(self.held_out_error(**here), other.held_out_error())
        if not TAILS[-1] < share <= TAIL:
            few = f"fewer than {TAILS[-1]:.2%} of unrelated pairs reach it, too few to count"
            many = f"{share:.0%} of unrelated pairs reach it, so that it tells little"
            nan = float("nan")
            return Carried(nan, nan, nan, share, reason=many if share > TAIL else few)
        carried = other.threshold(share, across=across)
        ends = [other.threshold(_known(share + sign * error), across=across) for sign in (1, -1)]
        shares = {} if across or len(self.domains) < 2 else {
            name: (self.probability(cosine, domain=name, **here), other.probability(carried, domain=name))
            for name in self.domains
        }  # fmt: skip
        ends += [other.threshold(own, domain=name) for name, (own, _) in shares.items()]
        found = Carried(carried, min(ends), max(ends), share)
        if not shares:
            return found
        name = max(shares, key=lambda one: abs(shares[one][0] - shares[one][1]))
        found = replace(found, domain=name, shares=shares[name])
        if abs(shares[name][0] - shares[name][1]) <= IN_KNOWN:
            return found
        reason = f"in {name} it would let through {shares[name][1]:.1%} where {shares[name][0]:.1%} pass here"
        return replace(found, cosine=float("nan"), reason=reason)

    def held_out_error(self, *, layer: int | None = None, pooling: str | None = None) -> float:
        """How far off a probability up to .1 is at most, on sentences that the floor wasn't fitted to."""
        return float(self.held_out[self._kind(pooling), self._layer(layer)])

    def threshold(self, probability: float, **choices: Any) -> float:
        """The cosine that unrelated pairs reach with this probability: the inverse of `probability`.

        Args:
            probability: In [.0005, .9995].
            choices: `length`, `layer`, `pooling`, `domain` and `across` as `probability` takes them.

        Returns:
            The cosine; `domain_range` of it says what share of them reaches it really.

        Raises:
            ValueError: A probability beyond what is known.

        Example:
            >>> x = np.random.default_rng(0).normal(size=(400, 20))
            >>> floor = Floor.of_vectors(x, [10] * 400)
            >>> round(floor.probability(floor.threshold(0.05, length=10), length=10), 6)
            0.05
        """
        if not TAILS[-1] <= probability <= TAILS[0]:
            raise ValueError(f"probability={probability}: expected {TAILS[-1]} to {TAILS[0]}; beyond, it isn't known")
        at = self._quantiles(**choices)
        return float(np.interp(probability, TAILS[::-1], at[::-1]))

    def domain_range(self, cosine: float, **choices: Any) -> tuple[float, float]:
        """The lowest and the highest probability over the floor's domains, less and more the error on other sentences
        of all domains together: how far the kind of text moves it. A single domain's own error is larger, since it has
        fewer sentences, and so is that of probabilities above .1.

        Args:
            cosine: The cosine.
            choices: `length`, `layer` and `pooling` as `probability` takes them.

        Returns:
            Two probabilities in [0, 1].

        Example:
            >>> x = np.random.default_rng(0).normal(size=(400, 20))
            >>> floor = Floor.of_vectors(x, [10] * 400)
            >>> low, high = floor.domain_range(floor.threshold(0.05))
            >>> low < 0.05 < high
            True
        """
        own = [self.probability(cosine, domain=name, **choices) for name in self.domains]
        error = self.held_out_error(layer=choices.get("layer"), pooling=choices.get("pooling"))
        return max(0.0, min(own) - error), min(1.0, max(own) + error)

    @classmethod
    def of_vectors(
        cls, vectors: npt.ArrayLike, lengths: Sequence[int] | None = None, *, layer: int = 0, pooling: str = "mean"
    ) -> Floor:
        """The floor of one layer, from sentences' vectors in hand.

        Args:
            vectors: (n, dim), of 40 sentences or more; with 100 the share that reaches the threshold of 5% is off by
                .05 at most, as a rule.
            lengths: Words of each sentence, punctuation not counted; None: lengths don't count.
            layer: The layer that they are of.
            pooling: Their pooling.

        Raises:
            ValueError: Fewer than 40 vectors that aren't 0, or not as many lengths.
        """
        x = np.asarray(vectors, np.float32)
        n = np.ones(len(x), np.int64) if lengths is None else np.asarray(lengths, np.int64)
        if x.ndim != 2 or x.any(axis=1).sum() < FEWEST or n.shape != (len(x),) or not np.isfinite(x).all():
            raise ValueError(
                f"expected finite vectors (n, dim) of {FEWEST} sentences or more that aren't 0, and a length of each, "
                f"got {x.shape} and {n.shape}"
            )
        every = np.arange(len(x))
        rows = Rows(x[None], every, np.zeros(len(x), np.int64), n, np.full(len(x), -1))
        fit = fit_rows({pooling: rows}, 1, most=OWN_PAIRS)
        return cls("vectors", "own", (layer,), (pooling,), ("own",), *fit)

    def domain_error(self, *, layer: int | None = None, pooling: str | None = None) -> float:
        """How far off a probability up to .1 can be in one of the floor's domains, taken alone; NaN of a single one."""
        if len(self.domains) < 2:
            return float("nan")
        kind, at, high = self._kind(pooling), self._layer(layer), TAILS <= TAIL
        pooled = quantiles(self.coefficients[kind, at], None)
        shares = [tail_probability(pooled[high], pooled + own) for own in self.offsets[:, kind, at, :, 0]]
        return float(np.abs(np.array(shares) - TAILS[high]).max())

    def _quantiles(
        self,
        length: Length | None = None,
        layer: int | None = None,
        pooling: str | None = None,
        domain: str | None = None,
        across: bool = False,
    ) -> np.ndarray:
        """Ascending (quantiles,)."""
        kind, at = self._kind(pooling), self._layer(layer)
        if across and (self.across is None or domain is not None):
            raise ValueError(
                f"across: pairs of two of the domains {', '.join(self.domains)} are asked for; domain=null"
            )
        coefficients = (self.across if across and self.across is not None else self.coefficients)[kind, at]
        result = quantiles(coefficients, None if length is None else self._clamped(length))
        if domain is not None:
            if domain not in self.domains:
                raise ValueError(f"no domain {domain!r}; it has {', '.join(self.domains)}")
            own = self.offsets[self.domains.index(domain), kind, at, :, int(length is not None)]
            result = np.maximum.accumulate(result + own)
        return result

    def _clamped(self, length: Length) -> tuple[float, float]:
        pair = np.broadcast_to(np.asarray(length, np.float64), (2,))
        if not (pair >= 1).all():
            raise ValueError(f"length={length}: expected words, 1 or more")
        a, b = np.clip(pair, *self.lengths).tolist()
        return a, b

    def _kind(self, pooling: str | None) -> int:
        """The number of the pooling; None: of the first one, of words where there is none."""
        name = pooling or next((kind for kind in self.kinds if kind != WORDS), WORDS)
        if name not in self.kinds:
            raise ValueError(f"no pooling {name!r}; it has {', '.join(self.kinds)}")
        return self.kinds.index(name)

    def _layer(self, layer: int | None) -> int:
        number = self.layers[-1] if layer is None else layer
        if number not in self.layers:
            raise ValueError(f"layer={layer}: the floor of {self.title} has layers {list(self.layers)}")
        return self.layers.index(number)

    def to_json(self) -> str:
        """The content of its file: a row a kind of pairs, layer and pooling."""
        rows = []
        for i, pooling in enumerate(self.kinds):
            for j, layer in enumerate(self.layers):
                for pairs, every in (("within", self.coefficients), ("across", self.across)):
                    if every is not None:
                        row = {"pairs": pairs, "pooling": pooling, "layer": layer, "quantiles": _as_lists(every[i, j])}
                        rows.append(row)
                offsets = {name: _as_lists(self.offsets[k, i, j]) for k, name in enumerate(self.domains)}
                rows[-1 if self.across is None else -2] |= {"error": float(self.held_out[i, j]), "domains": offsets}
        facts = {key: getattr(self, key) for key in ("text", "domains", "layers", "lengths")}
        told = {"format": FORMAT, "model": self.title, **facts, "poolings": self.kinds, "probabilities": TAILS.tolist()}
        lines = ",\n".join(json.dumps(row) for row in rows)
        return json.dumps(told)[:-1] + f', "rows": [\n{lines}\n]}}\n'

    def save(self, path: Path | str) -> None:
        """Write the file."""
        Path(path).expanduser().write_text(self.to_json(), encoding="utf-8")

    @classmethod
    def load(cls, path: Path | str) -> Floor:
        """The floor of a file.

        Args:
            path: A file that `ctxexp floor` wrote.

        Returns:
            The floor.

        Raises:
            ValueError: The file is missing, damaged, or of another format.

        Example:
            >>> from tempfile import TemporaryDirectory
            >>> floor = Floor.of_vectors(np.random.default_rng(0).normal(size=(50, 8)), [10] * 50)
            >>> with TemporaryDirectory() as folder:
            ...     floor.save(f"{folder}/model.floor.json")
            ...     Floor.load(f"{folder}/model.floor.json").layers
            (0,)
        """
        path = Path(path).expanduser()
        hint = f"ctxexp floor MODEL out={path.name}"
        try:
            told = json.loads(path.read_text(encoding="utf-8"))
            if told["format"] != FORMAT:
                raise ValueError(f"it is of format {told['format']!r}, expected {FORMAT!r}")
            return cls._of(told)
        except FileNotFoundError:
            raise ValueError(f"no floor at {path}; make one: {hint}") from None
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{path} is no floor, or damaged ({error}); make it anew: {hint}") from None

    @classmethod
    def _of(cls, told: dict[str, Any]) -> Floor:
        if told["probabilities"] != TAILS.tolist():
            raise ValueError("its probabilities aren't those of this version")
        rows = {(row["pairs"], row["pooling"], row["layer"]): row for row in told["rows"]}
        domains = tuple(told["domains"])

        def every(pairs: str, take: Callable[[dict[str, Any]], Any]) -> np.ndarray:
            """(kinds, layers, ...)."""
            cells = [[take(rows[pairs, kind, layer]) for layer in told["layers"]] for kind in told["poolings"]]
            result = np.array(cells, np.float64)
            if not np.isfinite(result).all():
                raise ValueError("it has numbers that aren't finite")
            return result

        offsets = every("within", lambda row: [row["domains"][name] for name in domains])
        return cls(
            title=told["model"],
            text=told["text"],
            layers=tuple(told["layers"]),
            kinds=tuple(told["poolings"]),
            domains=domains,
            coefficients=every("within", lambda row: row["quantiles"]),
            across=every("across", lambda row: row["quantiles"]) if len(domains) > 1 else None,
            offsets=np.moveaxis(offsets, 2, 0),
            held_out=every("within", lambda row: row["error"]),
            lengths=(int(told["lengths"][0]), int(told["lengths"][1])),
        )


def _known(probability: float) -> float:
    """The probability, or the nearest that floors know."""
    return float(np.clip(probability, TAILS[-1], TAILS[0]))


def _as_lists(values: np.ndarray) -> Any:
    """Nested lists, of 7 decimals."""
    return np.round(values, 7).tolist()
