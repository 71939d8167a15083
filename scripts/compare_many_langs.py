"""
Compares what `load_bilm` computes from folders of ELMoForManyLangs with what its own `Embedder`
computes, in all layers. Needs its package (elmoformanylangs, with overrides 3.1.0).

    python scripts/compare_many_langs.py             # random models of several shapes
    python scripts/compare_many_langs.py FOLDER      # a folder, for example a published one
    python scripts/compare_many_langs.py --record    # writes fixtures/many_langs
"""

import argparse
import copy
import json
import sys
import tempfile
from pathlib import Path
from typing import Any, Dict, List

import elmoformanylangs
import numpy
import torch
from elmoformanylangs.frontend import Model
from elmoformanylangs.modules.embedding_layer import EmbeddingLayer

from elmo_plugin import load_bilm
from elmo_plugin.bilm.files.many_langs import _KNOWN_CONFIG, _KNOWN_CONFIGS

FIXTURES = Path(__file__).parent.parent / "fixtures/many_langs"
TOLERANCE = 1e-5
SENTENCES = [
    ["The", "play", "began", "at", "8", "o'clock", "."],
    ["Пьеса", "началась", "в", "восемь", "часов", "!"],
    ["بدأت", "المسرحية", "في", "الثامنة", "؟"],
    ["नाटक", "आठ", "बजे", "शुरू", "हुआ", "।"],
    ["话剧", "八点", "开始", "。", "\u3000", "語"],
    ["🎭", "👩‍🎤", "ok👍🏽", "e\u0301", "é", "naïve"],
    ["<bos>", "<eos>", "<oov>", "<pad>", "<bow>", "a<bos>"],
    ["unheard", "ωμέγα", "\u0e01", "x" * 9, "x" * 10, "x" * 11, "x" * 60, "the" * 5, "began" * 10],
    ["Donaudampfschifffahrtsgesellschaftskapitän", "of", "語" * 70],
    ["."],
]
CHARACTERS = ["<bos>", "<eos>", "<oov>", "<pad>", "<bow>", "<eow>", "\u3000"]
CHARACTERS += sorted({c for words in SENTENCES[:6] for word in words for c in word} - {"\u3000"})
# Words as they are after they are cut; most words of the last sentences are unknown.
WORDS = ["<oov>", "<bos>", "<eos>", "<pad>", "\u3000", "x" * 10, "the" * 3 + "t", "xx"]
WORDS += sorted({word for words in SENTENCES[:6] for word in words[1:]} - {"\u3000"})
BASE = {
    "encoder": {
        **{"name": "elmo", "projection_dim": 6, "dim": 8, "n_layers": 2},
        **{"cell_clip": 3, "proj_clip": 3},
    },
    "token_embedder": {
        **{"name": "cnn", "activation": "relu", "n_highway": 2, "word_dim": 5, "char_dim": 4},
        **{"filters": [[1, 4], [2, 4], [3, 5]], "max_characters_per_token": 12},
    },
    "dropout": 0.1,
}


def shaped(**changes: Any) -> Dict[str, Any]:
    """The configuration of a tiny model, with changes of the settings of these names."""
    config: Dict[str, Any] = copy.deepcopy(BASE)
    for name, value in changes.items():
        part = "token_embedder" if name in config["token_embedder"] else "encoder"
        config[part][name] = value
    return config


RECORDED = {
    "both": shaped(),
    "characters": shaped(word_dim=0, activation="tanh", n_layers=1),
    "words": shaped(char_dim=0),
}
SHAPES = {
    **RECORDED,
    "three layers, wide filters": shaped(n_layers=3, filters=[[5, 3], [7, 3]], n_highway=1),
    "no highway, no bounds": shaped(n_highway=0, cell_clip=None, proj_clip=None),
    "narrow bounds": shaped(cell_clip=0.3, proj_clip=0.05, max_characters_per_token=50),
    "short words": shaped(max_characters_per_token=7, filters=[[7, 8]], word_dim=1),
    "as wide as its cell": shaped(projection_dim=8, dim=8, activation="tanh"),
    "words, short": shaped(char_dim=0, max_characters_per_token=12, n_layers=1),
}


def make(folder: Path, config: Dict[str, Any], seed: int, new_format: bool) -> None:
    """Writes a random model, as their training does; by default in the format of their time."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({"config_path": "/home/them/model.json"}))
    (folder / "model.json").write_text(json.dumps(config, indent=1))
    layers = []
    for name, entries in (("word", WORDS), ("char", CHARACTERS)):
        dim = config["token_embedder"][f"{name}_dim"]
        lines = [f"{entry}\t{row}\n" for row, entry in enumerate(entries)]
        rows = {entry: row for row, entry in enumerate(entries)}
        layers.append(EmbeddingLayer(dim, rows, fix_emb=False) if dim else None)
        if dim:
            # Rows need not be in order.
            (folder / f"{name}.dic").write_text("".join(lines[::-1]), encoding="utf-8")
    model = Model(config, *layers)
    generator = torch.Generator().manual_seed(seed)
    for part, file in ((model.token_embedder, "token_embedder"), (model.encoder, "encoder")):
        for value in part.state_dict().values():
            value.normal_(0.0, 1.2 * value.size(-1) ** -0.5, generator=generator)
        path = folder / f"{file}.pkl"
        torch.save(part.state_dict(), path, _use_new_zipfile_serialization=new_format)


def theirs(folder: Path) -> List[numpy.ndarray]:
    """The layers of each sentence."""
    return elmoformanylangs.Embedder(str(folder)).sents2elmo(SENTENCES, -2)


def largest_difference(folder: Path) -> float:
    bilm = load_bilm(folder)
    with torch.no_grad():
        layers = bilm(bilm.characters.batch_ids(SENTENCES)).layers.numpy()
    return max(
        float(abs(layers[:, row, 1 : len(words) + 1] - expected).max())
        for row, (words, expected) in enumerate(zip(SENTENCES, theirs(folder)))
    )


def record() -> None:
    for number, (name, config) in enumerate(RECORDED.items()):
        folder = FIXTURES / name
        make(folder, config, number, new_format=name == "words")
        numpy.savez_compressed(folder / "layers.npz", *theirs(folder))
    text = json.dumps(SENTENCES, ensure_ascii=False, indent=1)
    (FIXTURES / "sentences.json").write_text(f"{text}\n", encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folder", nargs="*", type=Path)
    parser.add_argument("--record", action="store_true")
    args = parser.parse_args()
    if args.record:
        record()
        return 0
    for name in _KNOWN_CONFIGS:
        path = Path(elmoformanylangs.__file__).parent / "configs" / name
        config = json.loads(path.read_text())
        assert {part: config[part] for part in _KNOWN_CONFIG} == _KNOWN_CONFIG, path
    differences = {}
    with tempfile.TemporaryDirectory() as temporary:
        for number, (name, config) in enumerate(() if args.folder else SHAPES.items()):
            for new_format in (False, True):
                folder = Path(temporary, f"{number}{new_format}")
                make(folder, config, number, new_format)
                differences[f"{name}, {'zip' if new_format else 'pickle'}"] = largest_difference(
                    folder
                )
        for folder in args.folder:
            differences[str(folder)] = largest_difference(folder)
    for name, difference in differences.items():
        print(f"{difference:.1e}  {name}")
    return int(max(differences.values()) > TOLERANCE)


if __name__ == "__main__":
    sys.exit(main())
