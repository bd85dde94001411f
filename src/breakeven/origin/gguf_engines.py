"""Which engines load GGUF files, and how a model that was read from one is known: nothing of the format itself."""

SOURCE = "gguf"
"""The line of ``sources`` that only a model read from GGUF has."""
READERS = ("llamacpp",)
EXPERIMENTAL = ("vllm", "sglang")
"""Engines that load GGUF files beside their own formats; vLLM's documentation calls its support highly experimental, recalled."""
