"""One file a verb of the command line; the file's name is the verb, and each defines ``VERB``."""
