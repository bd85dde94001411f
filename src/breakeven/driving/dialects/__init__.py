"""Dialects of engines, one file each."""
