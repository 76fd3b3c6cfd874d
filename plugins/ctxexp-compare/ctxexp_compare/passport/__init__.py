"""The passport of vectors that another engine computed: which layer of the checkpoint each of them is."""
