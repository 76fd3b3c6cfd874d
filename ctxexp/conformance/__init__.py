"""The conformance kit, a file a kind; its public face is `ctxexp.testing`."""
