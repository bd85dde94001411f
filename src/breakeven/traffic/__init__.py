"""What traffic looks like, and the use it makes of a deployment: arrivals, lengths, the batch over time."""
