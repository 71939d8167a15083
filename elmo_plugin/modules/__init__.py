"""Building blocks of models: recurrent and linear layers, encoders, embedders and kernels."""
