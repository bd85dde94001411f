"""Fits of the model's numbers to measurements, the files that keep them, and how well they predict."""
