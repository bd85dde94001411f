"""A running engine, read and never changed: pages of metrics or a metrics history to an operating point."""
