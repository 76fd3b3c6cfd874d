"""From sentences to rows on disk: alignment, encoding, the store, its cache, and pooling to sentence vectors."""
