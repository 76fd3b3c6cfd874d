"""Measuring in one pass: vectors are summed while they are encoded, shard by shard, and none is stored."""
