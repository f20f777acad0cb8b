"""Reference qrels, runs and trec_eval values, made by ``make_reference``."""
