"""
The files of a biLM. The model itself imports nothing from here.

`find` opens a path, a URL or a name (`published`), and `load` builds the model. `arrays` and
`layout` handle HDF5, safetensors and TensorFlow's checkpoints, `checkpoints` the folders of
bilm-tf's training, `trained` and `pack` archives of AllenNLP, `many_langs` folders of
ELMoForManyLangs, `softmax` the output layer; `folders` writes whole folders. To add a kind of
folder, extend `kinds.KINDS`; a format of arrays, `arrays._opened`; other names of tensors,
`layout._published_name`. `trained.is_archive` alone decides of which kind a weight file is.
"""
