"""Reference qrels, runs and trec_eval values, made by ``tests/reference/make_reference.py``."""
