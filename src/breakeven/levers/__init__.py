"""One file a lever; the file's name is the lever's name, and each defines ``LEVER``."""
