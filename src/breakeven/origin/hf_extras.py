"""What some families keep beside attention and MLP: inputs of each layer, several residual streams."""

from __future__ import annotations

from breakeven.origin.architecture import Architecture
from breakeven.origin.config_fields import Fields


def lookup_parameters(fields: Fields, arch: Architecture, layers: int) -> int:
    """Tables of which a token reads one row: per-layer embeddings, vocabulary·layers·width."""
    width = _input_width(fields, arch)
    return fields.count("vocab_size_per_layer_input", "vocab_size") * layers * width if width else 0


def stream_parameters(fields: Fields, arch: Architecture, hidden: int) -> int:
    """Hyper-connections: of one residual mixing (two a layer), a matrix over all streams, its bias, three scales."""
    if "hyper_connections" not in arch.extras:
        return 0
    streams = fields.count("hc_mult")
    mixed = (2 + streams) * streams
    return mixed * streams * hidden + mixed + 3


def stream_head_parameters(fields: Fields, arch: Architecture, hidden: int) -> int:
    """Hyper-connections: what joins the streams before the last norm."""
    if "hyper_connections" not in arch.extras:
        return 0
    streams = fields.count("hc_mult")
    return streams * streams * hidden + streams + 1


def beside_layers(fields: Fields, arch: Architecture, hidden: int, layers: int) -> tuple[int, int]:
    """Matrices that are multiplied, and vectors, of all layers: gates of the per-layer inputs, learned residuals, stream predictions."""
    matrices = vectors = 0
    width = _input_width(fields, arch)
    if width:
        matrices += hidden * layers * width + layers * 2 * hidden * width
        vectors += width + layers * hidden
    if "laurel" in arch.extras:
        matrices += layers * 2 * hidden * fields.count("laurel_rank")
        vectors += layers * hidden
    if "altup" in arch.extras:
        streams = fields.count("altup_num_inputs")
        matrices += 2 * (streams - 1) * hidden * hidden + layers * (streams * hidden + streams**2 + streams**3)
        vectors += layers * 2 * hidden
    return matrices, vectors


def _input_width(fields: Fields, arch: Architecture) -> int:
    if "layer_inputs" not in arch.extras:
        return 0
    return fields.optional_count("hidden_size_per_layer_input", low=0) or 0
