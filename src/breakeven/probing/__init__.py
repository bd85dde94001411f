"""What this machine reaches: memory bandwidth, matrix rate, links."""
