"""Compiled CPU kernels of the recurrent cells."""
