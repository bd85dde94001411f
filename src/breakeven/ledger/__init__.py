"""Three books and a wire: memory, bandwidth, compute, interconnect; and the step time they add up to."""
