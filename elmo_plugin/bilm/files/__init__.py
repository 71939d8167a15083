"""
The files of a biLM. The model itself imports nothing from here.

`load` finds the files, checks them and builds the model. `arrays` and `layout` read and write HDF5
and safetensors, `trained` reads archives of AllenNLP, `pack` writes small ones, `folders` handles
whole folders and the Hugging Face Hub, and `softmax` the output layer. To add a format of arrays,
extend `arrays._opened`; other names of tensors, `layout._published_name`; another kind of file,
`load.read_parameters`.
"""
