"""Engine of Ray's actors: each keeps a model; one that dies is begun anew, and its item is tried again."""

from __future__ import annotations

import logging
import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.util import find_spec
from itertools import chain, islice
from typing import Any, ClassVar, TypeVar

from ctxexp import CtxexpError
from ctxexp.errors import ConfigError, error_text
from ctxexp_scale.encoding import SHARD_TOKENS, Engine

INTERPRETERS = {"py_executable", "pip", "uv", "conda", "container", "image_uri"}  # Ray's keys that choose one
T = TypeVar("T")
R = TypeVar("R")


class RayEngine(Engine):
    """Workers that are Ray actors, of the cluster at `address` or of one that is started on this machine for the run.

    Results of items are written in the cache folder, which all nodes must see under the same path. An item at which
    workers die is given up after three deaths.

    address: of a cluster (auto, ray://host:10001); null: one on this machine, for the run
    workers: actors, each with a model of its own; work begins with the first there is room for
    cpus: of each
    gpus: of each; null: one where the cluster has any
    accelerator_type: of the GPUs, as Ray names it (A100); null: any
    max_restarts: how often a worker that died is begun anew; -1: always. An item is tried three times at most
    runtime_env: of the workers, as Ray describes it: {pip: [...], env_vars: {...}, working_dir: ...}
    shard_tokens: encoded as one item: what is lost when a worker dies

    Args:
        address: Address of a cluster (`auto`, `ray://host:10001`); None: a cluster on this machine, for the run.
        workers: Largest number of actors; work starts with the first one that the cluster has room for.
        cpus: CPU cores of each actor.
        gpus: GPUs of each actor; None: one where the cluster has any.
        accelerator_type: Type of the GPUs, by Ray's name (`A100`); None: any.
        max_restarts: Number of times that an actor which died is replaced; -1: no bound.
        runtime_env: Ray's description of the environment of its workers (`pip`, `env_vars`, `working_dir` ...).
        shard_tokens: Number of model tokens that are encoded as one item.
    """

    name = "ray"
    _own_node: ClassVar[str] = ""  # node id of the cluster that was started for this process

    def __init__(
        self,
        *,
        address: str | None = None,
        workers: int = 2,
        cpus: float = 1,
        gpus: float | None = None,
        accelerator_type: str | None = None,
        max_restarts: int = -1,
        runtime_env: Mapping[str, Any] | None = None,
        shard_tokens: int = SHARD_TOKENS,
    ) -> None:
        if find_spec("ray") is None:
            raise ConfigError("engine=ray needs the library ray, which isn't installed: pip install ray")
        if workers < 2 or shard_tokens < 1 or cpus < 0 or (gpus or 0) < 0 or max_restarts < -1:
            raise ConfigError(
                f"engine ray: expected at least 2 workers, shard_tokens of at least 1, no negative cpus or gpus, "
                f"max_restarts of at least -1; got workers={workers}, shard_tokens={shard_tokens}, cpus={cpus}, "
                f"gpus={gpus}, max_restarts={max_restarts}; for one worker engine=local"
            )
        self.address, self.workers, self.cpus, self.gpus, self.shard_tokens = address, workers, cpus, gpus, shard_tokens
        self.accelerator_type, self.max_restarts = accelerator_type, max_restarts
        self.runtime_env = dict(runtime_env or {})

    def map_unordered(self, make: Callable[[], Callable[[T], R]], items: Iterable[T]) -> Iterator[R]:
        import cloudpickle
        import ray

        from ctxexp_scale.ray.worker import RayWorker, map_items  # what Ray makes of a class needs Ray

        source = iter(items)
        first = list(islice(source, 1))
        if not first:
            return
        options: dict[str, Any] = {}
        runtime_env = self._worker_environment()
        if not self._connect() and runtime_env:  # a connection that this call makes has it already
            options["runtime_env"] = runtime_env
        gpus = self.gpus if self.gpus is not None else float(ray.cluster_resources().get("GPU", 0) > 0)
        options |= {"num_cpus": self.cpus, "num_gpus": gpus}
        if self.accelerator_type:
            options["accelerator_type"] = self.accelerator_type
        own = ray.get_runtime_context().get_node_id() == RayEngine._own_node
        driver = (os.getpid(), self.process_identity(os.getpid()) or "") if own else None
        actor = RayWorker.options(**options, max_restarts=self.max_restarts)  # type: ignore[attr-defined]  # Ray's
        actors = [actor.remote(cloudpickle.dumps(make), driver) for _ in range(self.workers)]
        yield from map_items(actors, chain(first, source))

    def _worker_environment(self) -> dict[str, Any]:
        """Ray's description of the workers' environment. Ray starts such a worker by a shell and doesn't quote the
        interpreter: with a space in its path none would ever start."""
        if not self.runtime_env or self.address or " " not in sys.executable or self.runtime_env.keys() & INTERPRETERS:
            return self.runtime_env
        return {**self.runtime_env, "py_executable": shlex.quote(sys.executable)}

    def _connect(self) -> bool:
        """Connect to the cluster at the address, or to one that is started for this process, unless the process is
        connected. Returns whether this call connected."""
        import ray

        if ray.is_initialized():
            return False
        local = {"num_cpus": int(self.cpus * self.workers) or 1, "include_dashboard": False} if not self.address else {}
        try:
            with self.defer_signals():  # puts handlers back: Ray's ends the process with 15, and leaves the job RUNNING
                ray.init(address=self.address or "local", log_to_driver=False, logging_level=logging.ERROR,
                         runtime_env=self._worker_environment() or None, **local)  # fmt: skip
        except (ConnectionError, RuntimeError, ValueError, OSError) as error:
            raise CtxexpError(
                f"engine ray: no cluster at engine.address={self.address}: {error_text(error)}"
            ) from error
        if not self.address:
            RayEngine._own_node = ray.get_runtime_context().get_node_id()
        return True
