"""Work done by Ray's actors: each keeps a model; Ray begins one that died anew and gives it its item again."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from typing import Any, TypeVar

from ctxexp.engine import Engine
from ctxexp.errors import ConfigError, EngineError, said

log = logging.getLogger("ctxexp")

T = TypeVar("T")
R = TypeVar("R")


class Ray(Engine):
    """`workers` actors of the cluster at `address`, or of one that is begun here (None), each with `cpus` and `gpus`.

    What items make lies in the cache's folder, which all nodes must share under one path.
    """

    name = "ray"

    def __init__(
        self,
        *,
        address: str | None = None,
        workers: int = 2,
        cpus: float = 1,
        gpus: float | None = None,
        shard_tokens: int = Engine.shard_tokens,
    ) -> None:
        if find_spec("ray") is None:
            raise ConfigError("engine=ray needs the library ray, which isn't installed: pip install ctxexp-ray")
        if workers < 2 or shard_tokens < 1 or cpus < 0 or (gpus or 0) < 0:
            raise ConfigError(
                f"engine ray: expected at least 2 workers, shard_tokens of at least 1, no negative cpus or gpus; got "
                f"workers={workers}, shard_tokens={shard_tokens}, cpus={cpus}, gpus={gpus}; for one worker engine=local"
            )
        self.address, self.workers, self.cpus, self.gpus, self.shard_tokens = address, workers, cpus, gpus, shard_tokens

    def each(self, make: Callable[[], Callable[[T], R]], items: Iterable[T]) -> Iterator[R]:
        import cloudpickle
        import ray
        from ray.exceptions import RayActorError, RayTaskError
        from ray.util import ActorPool

        from ctxexp_ray.worker import Worker  # what Ray makes of a class needs Ray

        left = list(items)
        if not left:
            return
        began = time.monotonic()
        self._connect()
        gpus = self.gpus if self.gpus is not None else float(ray.cluster_resources().get("GPU", 0) > 0)
        wanted = {"num_cpus": self.cpus, "num_gpus": gpus, "max_restarts": -1, "max_task_retries": -1}
        work = cloudpickle.dumps(make)
        actors = [Worker.options(**wanted).remote(work) for _ in range(min(self.workers, len(left)))]
        try:
            nodes = set(self._ready(actors, wanted))
            took = time.monotonic() - began
            log.info("engine ray: %d workers on %d nodes, ready after %.1f s", len(actors), len(nodes), took)
            yield from ActorPool(actors).map_unordered(lambda actor, item: actor.do.remote(item), left)
        except RayTaskError as error:
            raise error.cause if isinstance(error.cause, Exception) else EngineError(said(error)) from None
        except RayActorError as error:
            raise EngineError(f"engine ray: a worker can't be begun again: {said(error)}") from error
        finally:
            for actor in actors:
                ray.kill(actor)

    def _connect(self) -> None:
        import ray

        if ray.is_initialized():
            return
        local = {"num_cpus": int(self.cpus * self.workers) or 1, "include_dashboard": False} if not self.address else {}
        try:
            ray.init(address=self.address or "local", log_to_driver=False, logging_level=logging.ERROR, **local)
        except (ConnectionError, RuntimeError, ValueError, OSError) as error:
            raise EngineError(f"engine ray: no cluster at engine.address={self.address}: {said(error)}") from error

    def _ready(self, actors: list[Any], wanted: dict[str, float]) -> Iterator[str]:
        """The node of each actor, once it is there."""
        import ray

        asked = [actor.node.remote() for actor in actors]
        while asked:
            done, asked = ray.wait(asked, num_returns=1, timeout=60)
            if not done:
                has = {name: n for name, n in ray.available_resources().items() if name in ("CPU", "GPU")}
                log.warning("engine ray: waiting for workers of %s CPUs and %s GPUs; free are %s", wanted["num_cpus"],
                            wanted["num_gpus"], has)  # fmt: skip
            yield from ray.get(done)
