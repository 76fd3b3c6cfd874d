"""An engine whose workers are the actors of a Ray cluster, local or anyone's."""
