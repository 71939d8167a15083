"""
Building blocks of models: recurrent layers, linear layers, encoders, token embedders,
and compiled kernels.
"""
