"""One file per engine: its metric names by version."""
