"""Prefix reuse of a trace: chained block hashes, stack distances, and the hit rate at every capacity."""
