"""The use cases about running engines, one function each: observe, and load that was asked for."""
