"""A linear probe of any model's layers for any labels of words, beside control tasks (Hewitt & Liang 2019)."""
