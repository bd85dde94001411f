"""One file per use case; ``api.py`` is their face."""
