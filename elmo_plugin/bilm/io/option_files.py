"""The options of a biLM as the content of an options file."""

from typing import Any, Dict

from elmo_plugin.bilm.options import BilmOptions

OPTIONS_FILE = "options.json"
WEIGHT_FILE = "weights.hdf5"


def written_options(options: BilmOptions) -> Dict[str, Any]:
    """
    The content of an options file. It holds each setting for which AllenNLP or bilm-tf has another
    default, and no `vocabulary`: the words of token embeddings are written to `vocabulary.txt`.
    """
    cnn, lstm = options.char_cnn, options.lstm
    written = {
        **options.source,
        "bidirectional": options.bidirectional,
        "lstm": {
            **options.source["lstm"],
            "projection_dim": lstm.projection_dim,
            "n_layers": lstm.n_layers,
            "cell_clip": lstm.cell_clip,
            "proj_clip": lstm.proj_clip,
            "use_skip_connections": lstm.use_skip_connections,
        },
    }
    if cnn is None:
        return {name: value for name, value in written.items() if name != "vocabulary"}
    encoder = {"activation": cnn.activation, "n_highway": cnn.n_highway}
    return {**written, "char_cnn": {**options.source["char_cnn"], **encoder}}
