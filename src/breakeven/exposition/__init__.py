"""What an engine shows at its metrics endpoint, in the text formats of Prometheus or as JSON: bytes to readings of known quantities."""
