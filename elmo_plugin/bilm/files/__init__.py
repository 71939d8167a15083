"""
The files of a biLM. The model itself imports nothing from here.

`load` finds and checks files and builds the model. `arrays` and `layout` handle HDF5 and
safetensors (to add names of tensors, extend `layout._published_name`), `trained` and `pack`
archives of AllenNLP, `folders` whole folders and the Hugging Face Hub, and `softmax` the output
layer.
"""
