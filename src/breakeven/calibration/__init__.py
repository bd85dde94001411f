"""The model held against measurements: fits and the files that keep them, predictions beside what was measured."""
