"""A package, so that benchmarks/service.py cannot take its name."""
