"""
The files of a biLM. The model itself imports nothing from here.

`load` finds and checks files and builds the model. `arrays` and `layout` handle HDF5, safetensors
and TensorFlow's checkpoints, `checkpoints` the folders of bilm-tf's training, `trained` and `pack`
archives of AllenNLP, `folders` whole folders and the Hugging Face Hub, and `softmax` the output
layer. To add a format of arrays, extend `arrays._opened`; other names
of tensors, `layout._published_name`. `trained.is_archive` alone decides of which kind a file is;
`load.read_parameters` and `softmax.find_softmax` call it.
"""
