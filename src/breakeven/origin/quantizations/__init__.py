"""One file for each family of ways to write a quantisation down; ``hf_quantization`` knows which method is read by which."""
