"""Li et al. (EMNLP 2020), On the Sentence Embeddings from Pre-trained Language Models (BERT-flow)."""
