"""The model held against measurements: predictions beside what was measured, and fits."""
