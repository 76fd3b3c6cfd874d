"""Callbacks of trainers that measure layers: transformers' and Lightning's."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ctxexp.errors import ConfigError

if TYPE_CHECKING:
    from ctxexp_lab.curves.layer_curves import LayerCurves


def attach(curves: LayerCurves, trainer: Any) -> None:
    """Add the callback to a trainer of transformers or of Lightning. Raises ConfigError."""
    packages = {base.__module__.partition(".")[0] for base in type(trainer).__mro__}
    if "transformers" in packages and hasattr(trainer, "add_callback"):
        curves.tokenizer = curves.tokenizer or trainer.processing_class
        trainer.add_callback(_for_transformers(curves, trainer))
    elif lightning := packages & {"lightning", "pytorch_lightning"}:
        package = "lightning.pytorch" if "lightning" in lightning else "pytorch_lightning"
        trainer.callbacks.append(_for_lightning(curves, import_module(package).Callback))
    else:
        raise ConfigError(
            f"LayerCurves.attach: expected a Trainer of transformers or of Lightning, got {type(trainer).__name__}; in "
            "a loop of your own call curves.step(model, step)"
        )


def _for_transformers(curves: LayerCurves, trainer: Any) -> Any:
    """A TrainerCallback; values go to `state.log_history` and to what the trainer reports to."""
    from transformers import TrainerCallback

    class LayerCurvesCallback(TrainerCallback):  # type: ignore[misc]  # transformers has no types
        def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            self.on_step_end(args, state, control, **kwargs)

        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            if values := curves.step(kwargs["model"], state.global_step):
                trainer.log(values)
            if curves.should_stop:
                control.should_training_stop = True

    return LayerCurvesCallback()


def _for_lightning(curves: LayerCurves, base: Any) -> Any:
    """A Callback; values go to the trainer's loggers."""

    class LayerCurvesCallback(base):  # type: ignore[misc]  # of whichever Lightning is installed
        def on_train_start(self, trainer: Any, pl_module: Any) -> None:
            if values := curves.step(pl_module, trainer.global_step):
                for logger in trainer.loggers:
                    logger.log_metrics(values, step=trainer.global_step)
            trainer.should_stop = trainer.should_stop or curves.should_stop

        def on_train_batch_end(self, trainer: Any, pl_module: Any, *args: Any) -> None:
            self.on_train_start(trainer, pl_module)

    return LayerCurvesCallback()
