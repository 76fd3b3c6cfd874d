"""The training step as an axis: a training's checkpoints checked, measured, and drawn layers by steps."""
