"""Writes the layers of a biLM over a text into one HDF5 file."""
