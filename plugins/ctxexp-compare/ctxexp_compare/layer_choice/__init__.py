"""Which layer should I use? The choice of a layer and a transform, and what is known of it."""
