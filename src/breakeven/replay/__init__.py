"""Drafting without a model, replayed exactly on logged tokens: what would have been drafted, and how much of it was right."""
