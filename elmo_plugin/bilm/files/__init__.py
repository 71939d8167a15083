"""
The weights of a biLM in files of any kind.

`load` is the one road: it finds the files, checks them and builds the model. What it reads:
`arrays` (HDF5, safetensors) with the tensors of `layout`, and `trained` (archives of AllenNLP).
`folders` writes whole folders; `softmax` is the output layer beside the weights. The model itself
imports nothing from here.
"""
