"""The page of accuracy: what the model predicts against what others measured, and the same for what it would replace."""
