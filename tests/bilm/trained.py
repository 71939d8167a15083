"""Folders and archives as AllenNLP leaves them after training, without training."""

import shutil
from pathlib import Path
from typing import List, Optional, Tuple

import torch
from allennlp.data import Vocabulary
from allennlp.models.archival import archive_model

from elmo_plugin.bilm import Bilm
from elmo_plugin.tasks.bilm.vocabulary import SoftmaxVocabulary

WORDS = ["<S>", "</S>", "<UNK>", "the", "naïve", "@@NEWLINE@@", "🦉"]
COUNTS = [10, 10, 3, 9, 4, 4, 1]


class StandIn(torch.nn.Module):
    """Parameters of a language model under the names of `elmo-bilm`, or of a task's model."""

    def __init__(self, bilm: Bilm, num_words: int = 0, **others: torch.nn.Module) -> None:
        super().__init__()
        self.bilm = bilm
        if num_words:
            self.softmax = torch.nn.Linear(bilm.options.lstm.output_dim, num_words)
        for name, module in others.items():
            self.add_module(name, module)


def vocabulary(tmp_path: Path, counts: Optional[List[int]] = COUNTS) -> Vocabulary:
    lines = [f"{word}\t{n}" for word, n in zip(WORDS, counts)] if counts else WORDS
    (tmp_path / "words.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return SoftmaxVocabulary.from_text(file=str(tmp_path / "words.txt"))


def save_run(model: torch.nn.Module, vocab: Vocabulary, folder: Path) -> Tuple[Path, Path]:
    """The folder of a training run, and its archive elsewhere."""
    folder.mkdir()
    torch.save(model.state_dict(), folder / "best.th")
    # What training configured is of no interest to who reads the weights.
    (folder / "config.json").write_text("{}")
    vocab.save_to_files(str(folder / "vocabulary"))
    archive_model(folder)
    archive = folder.with_name(f"{folder.name}.tar.gz")
    shutil.move(folder / "model.tar.gz", archive)
    return folder, archive
