"""Places x groups x metrics -> curves: words, gold pairs and embedding tables, and the study of all."""
