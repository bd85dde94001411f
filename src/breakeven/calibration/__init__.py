"""Fits of the efficiencies to measurements, what is left over, and how well both predict what they have not seen."""
