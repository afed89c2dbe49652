"""A fixed campaign of problems, and the digests of its results: the same on every machine."""
