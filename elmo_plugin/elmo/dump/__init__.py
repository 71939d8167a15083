"""Writes the layers of a biLM over a text into one file: HDF5, safetensors or Parquet."""
