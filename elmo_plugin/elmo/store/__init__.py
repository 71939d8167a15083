"""Vectors on the disk: rows that grow by commits, and the files of `elmo embed`."""
