"""
The weights of a biLM in files. `load` is the one road: it finds the files, checks them and builds
the model, which itself imports nothing from here. `arrays` and `layout` read and write HDF5 and
safetensors, `trained` reads archives of AllenNLP, `pack` writes small ones, `folders` handles whole
folders and the Hugging Face Hub, and `softmax` the output layer beside the weights.

A new format of arrays is a branch of `arrays._opened`, other names of tensors are a case of
`layout._published_name`, and a new kind of file is a branch of `load.read_parameters`.
"""
