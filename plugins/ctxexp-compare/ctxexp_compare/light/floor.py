"""A floor: the null distribution of cosines by layer, as an object and a JSON file that any language reads."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .fit import TAIL, TAILS, fit_rows, tail_probability
from .pairs import WORDS, Rows

FORMAT = "ctxexp floor 5"  # of the file: `floor.schema.json` beside this one
EMBEDDED = "embedded sentences"  # the text where none is given
OWN_PAIRS = 100_000
FEWEST = 40  # sentences of a domain: 780 pairs
CARRYING = 150  # sentences of a domain, by which a cosine is carried: from 100 a share is off by ALLOWED too often
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
        reason: Why it can't be carried; empty where it can.
    """

    cosine: float
    low: float
    high: float
    share: float
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
        within: (kinds, layers, quantiles) of pairs of one domain.
        across: The same of pairs of two domains; None where there is one.
        by_domain: (domains, kinds, layers, quantiles) of each domain's pairs.
        held_out: (kinds, layers) the largest error of a probability up to .1 on sentences that it wasn't fitted to.
        sentences: How many sentences the domain with the fewest has.
    """

    title: str
    text: str
    layers: tuple[int, ...]
    kinds: tuple[str, ...]
    domains: tuple[str, ...]
    within: np.ndarray
    across: np.ndarray | None
    by_domain: np.ndarray
    held_out: np.ndarray
    sentences: int

    def probability(
        self,
        cosine: npt.ArrayLike,
        *,
        layer: int | None = None,
        pooling: str | None = None,
        domain: str | None = None,
        across: bool = False,
    ) -> Any:
        """The probability that two unrelated sentences, or words, have such a cosine or a higher one.

        Args:
            cosine: The cosine, or an array of them.
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
            >>> floor = Floor.of_vectors(rng.normal(size=(400, 20)))
            >>> bool(floor.probability(0.5) < 0.05 < floor.probability(0.3))
            True
        """
        probability = tail_probability(np.asarray(cosine, np.float64), self._quantiles(layer, pooling, domain, across))
        return float(probability) if np.ndim(cosine) == 0 else probability

    def carry(self, other: Floor, cosine: float, *, across: bool = False, fewest: int = CARRYING) -> Carried:
        """The cosine that lets through as many unrelated pairs in another model as this one does here.

        Args:
            other: The other model's floor, of the same text.
            cosine: The cosine in this floor's model, in its last layer.
            across: Of pairs of two domains, in the place of one.
            fewest: Sentences that each domain needs: from fewer the share is off by more than .02 too often.

        Returns:
            The cosine, with a reason in its place where the text is the embedded one or has too few sentences, where
            fewer than .0005 or more than .1 of the pairs reach it, or where in one of the domains the other model would
            let through a share that differs by more than .01. It holds for text of these domains: another may differ
            by any share.

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
        share = self.probability(cosine, across=across)
        refused = partial(Carried, np.nan, np.nan, np.nan, share)
        if EMBEDDED in (self.text, other.text) or min(self.sentences, other.sentences) < fewest:
            return refused(f"give text= of your own, {fewest} sentences or more of each kind")
        if share <= TAILS[-1]:
            return refused(f"fewer than {TAILS[-1]:.2%} of unrelated pairs reach it, too few to count")
        if share > TAIL:
            return refused(f"{share:.0%} of unrelated pairs reach it, so that it tells little")
        error = max(self.held_out_error(), other.held_out_error())
        carried = other.threshold(share, across=across)
        shares = np.clip([share + error, share - error], TAILS[-1], TAILS[0])  # the nearest that floors know
        ends = [other.threshold(one, across=across) for one in shares]
        for name in () if across or len(self.domains) < 2 else self.domains:
            own, there = self.probability(cosine, domain=name), other.probability(carried, domain=name)
            if abs(own - there) > IN_KNOWN:
                return refused(f"in {name} it would let through {there:.1%} where {own:.1%} pass here")
            ends.append(other.threshold(own, domain=name))
        return Carried(carried, min(ends), max(ends), share)

    def held_out_error(self, *, layer: int | None = None, pooling: str | None = None) -> float:
        """How far off a probability up to .1 is at most, on sentences that the floor wasn't fitted to."""
        return float(self.held_out[self._kind(pooling), self._layer(layer)])

    def threshold(self, probability: float, **choices: Any) -> float:
        """The cosine that unrelated pairs reach with this probability: the inverse of `probability`.

        Args:
            probability: In [.0005, .9995].
            choices: `layer`, `pooling`, `domain` and `across` as `probability` takes them.

        Returns:
            The cosine; `domain_range` of it says what share of them reaches it really.

        Raises:
            ValueError: A probability beyond what is known.

        Example:
            >>> x = np.random.default_rng(0).normal(size=(400, 20))
            >>> floor = Floor.of_vectors(x)
            >>> round(floor.probability(floor.threshold(0.05)), 6)
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
            choices: `layer` and `pooling` as `probability` takes them.

        Returns:
            Two probabilities in [0, 1].

        Example:
            >>> x = np.random.default_rng(0).normal(size=(400, 20))
            >>> floor = Floor.of_vectors(x)
            >>> low, high = floor.domain_range(floor.threshold(0.05))
            >>> low < 0.05 < high
            True
        """
        own = [self.probability(cosine, domain=name, **choices) for name in self.domains]
        error = self.held_out_error(layer=choices.get("layer"), pooling=choices.get("pooling"))
        return max(0.0, min(own) - error), min(1.0, max(own) + error)

    @classmethod
    def of_vectors(cls, vectors: npt.ArrayLike, *, layer: int = 0, pooling: str = "mean") -> Floor:
        """The floor of one layer, from sentences' vectors in hand.

        Args:
            vectors: (n, dim), of 40 sentences or more; with 100 the share that reaches the threshold of 5% is off by
                .05 at most, as a rule.
            layer: The layer that they are of.
            pooling: Their pooling.

        Raises:
            ValueError: Fewer than 40 vectors that aren't 0.
        """
        x = np.asarray(vectors, np.float32)
        if x.ndim != 2 or x.any(axis=1).sum() < FEWEST or not np.isfinite(x).all():
            raise ValueError(
                f"expected finite vectors (n, dim) of {FEWEST} sentences or more that aren't 0, got {x.shape}"
            )
        rows = Rows(x[None], np.arange(len(x)), np.zeros(len(x), np.int64), np.full(len(x), -1))
        fit = fit_rows({pooling: rows}, 1, most=OWN_PAIRS)
        return cls("vectors", "own", (layer,), (pooling,), ("own",), *fit)

    def domain_error(self, *, layer: int | None = None, pooling: str | None = None) -> float:
        """How far off a probability up to .1 can be in one of the floor's domains, taken alone; NaN of a single one."""
        if len(self.domains) < 2:
            return float("nan")
        kind, at, high = self._kind(pooling), self._layer(layer), TAILS <= TAIL
        shares = [tail_probability(self.within[kind, at, high], own) for own in self.by_domain[:, kind, at]]
        return float(np.abs(np.array(shares) - TAILS[high]).max())

    def _quantiles(
        self, layer: int | None = None, pooling: str | None = None, domain: str | None = None, across: bool = False
    ) -> np.ndarray:
        """Ascending (quantiles,)."""
        kind, at = self._kind(pooling), self._layer(layer)
        if across:
            if self.across is None or domain is not None:
                raise ValueError(f"across: pairs of two of the domains {', '.join(self.domains)} are asked for")
            return np.asarray(self.across[kind, at])
        if domain is None:
            return np.asarray(self.within[kind, at])
        if domain not in self.domains:
            raise ValueError(f"no domain {domain!r}; it has {', '.join(self.domains)}")
        return np.asarray(self.by_domain[self.domains.index(domain), kind, at])

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
        """The content of its file: a row a pooling and layer."""
        rows = []
        for i, pooling in enumerate(self.kinds):
            for j, layer in enumerate(self.layers):
                across = None if self.across is None else _as_list(self.across[i, j])
                row = {"pooling": pooling, "layer": layer, "within": _as_list(self.within[i, j]), "across": across}
                by_domain = {name: _as_list(self.by_domain[k, i, j]) for k, name in enumerate(self.domains)}
                rows.append(row | {"error": float(self.held_out[i, j]), "domains": by_domain})
        told = {"format": FORMAT, "model": self.title, "text": self.text, "sentences": self.sentences}
        told["probabilities"] = TAILS.tolist()
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
            >>> floor = Floor.of_vectors(np.random.default_rng(0).normal(size=(50, 8)))
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
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            raise ValueError(f"{path} is no floor, or damaged ({error}); make it anew: {hint}") from None

    @classmethod
    def _of(cls, told: dict[str, Any]) -> Floor:
        if told["probabilities"] != TAILS.tolist():
            raise ValueError("its probabilities aren't those of this version")
        rows = {(row["pooling"], row["layer"]): row for row in told["rows"]}
        kinds, layers = (tuple(dict.fromkeys(key[i] for key in rows)) for i in (0, 1))
        domains = tuple(told["rows"][0]["domains"])

        def every(take: Callable[[dict[str, Any]], Any]) -> np.ndarray:
            """(kinds, layers, ...)."""
            result = np.array([[take(rows[kind, layer]) for layer in layers] for kind in kinds], np.float64)
            if not np.isfinite(result).all():
                raise ValueError("it has numbers that aren't finite")
            return result

        by_domain = every(lambda row: [row["domains"][name] for name in domains])
        return cls(
            told["model"], told["text"], layers, kinds, domains,
            within=every(lambda row: row["within"]),
            across=every(lambda row: row["across"]) if len(domains) > 1 else None,
            by_domain=np.moveaxis(by_domain, 2, 0),
            held_out=every(lambda row: row["error"]),
            sentences=int(told["sentences"]),
        )  # fmt: skip


def said(carried: Carried) -> str:
    """What became of a cosine, in words."""
    if carried.reason:
        return f"it can't be carried: {carried.reason}"
    reach = f"{carried.share:.2%} of unrelated pairs reach either"
    return f"{carried.cosine:.3f} [{carried.low:.3f}, {carried.high:.3f}]; {reach}"


def _as_list(values: np.ndarray) -> Any:
    """Numbers of 7 decimals."""
    return np.round(values, 7).tolist()
