"""The biLMs that can be opened by a name: those of AllenNLP's list, and those of this project."""

from dataclasses import dataclass
from typing import Dict

from elmo_plugin.util.files import shipped

_ALLENNLP = "https://allennlp.s3.amazonaws.com/models/elmo/"


@dataclass(frozen=True)
class PublishedBilm:
    """A biLM and what its authors say about it. What is not known is an empty string."""

    #: Language and domain of the training text.
    text: str
    #: Cells and width, per direction, of each of the two recurrent layers, and parameters.
    size: str
    #: Paths or URLs.
    options_file: str
    weight_file: str
    licence: str = ""
    is_shipped: bool = False


def _shipped(folder: str, size: str, weight_file: str) -> PublishedBilm:
    url = shipped(f"pretrained/{folder}").as_posix()
    files = f"{url}/options.json", f"{url}/{weight_file}"
    return PublishedBilm("English, Wikipedia", size, *files, "CC BY-SA 3.0", is_shipped=True)


def _of_allennlp(text: str, size: str, name: str, weights: str = "_weights") -> PublishedBilm:
    url = f"{_ALLENNLP}{name}"
    return PublishedBilm(text, size, f"{url}_options.json", f"{url}{weights}.hdf5")


_SMALL, _MEDIUM = "2x1024_128_2048cnn_1xhighway", "2x2048_256_2048cnn_1xhighway"
_NEWS = "English, 1 Billion Word Benchmark"
_LARGE = "2x4096_512_2048cnn_2xhighway"

#: By name. "small" and "medium" alone could mean two biLMs each, so no name is one of these.
PUBLISHED: Dict[str, PublishedBilm] = {
    "shipped-small": _shipped("small", "512/128, 3.0 million", "weights.safetensors"),
    "shipped-medium": _shipped("medium", "2048/256, 21.4 million", "weights.hdf5"),
    "allennlp-small": _of_allennlp(_NEWS, "1024/128, 13.6 million", f"{_SMALL}/elmo_{_SMALL}"),
    "allennlp-medium": _of_allennlp(_NEWS, "2048/256, 28.0 million", f"{_MEDIUM}/elmo_{_MEDIUM}"),
    "original": _of_allennlp(_NEWS, "4096/512, 93.6 million", f"{_LARGE}/elmo_{_LARGE}"),
    "original-5.5b": _of_allennlp(
        "English, Wikipedia and news of WMT",
        "4096/512, 93.6 million",
        f"{_LARGE}_5.5B/elmo_{_LARGE}_5.5B",
    ),
    "portuguese": _of_allennlp("Portuguese", "", "contributed/pt/elmo_pt"),
    "pubmed": _of_allennlp(
        "English, abstracts of PubMed",
        "4096/512, 93.6 million",
        f"contributed/pubmed/elmo_{_LARGE}",
        "_weights_PubMed_only",
    ),
}
