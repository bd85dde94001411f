"""How well `breakeven calibrate --url` predicts real engines on this machine at points that were in no fit: docs/theory/cpu-accuracy.md."""
