"""AllenNLP is patched in one file. What the patches of a command do is tested with the command."""

import ast
from pathlib import Path
from typing import List

import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import Vocabulary
from allennlp.data.data_loaders import SimpleDataLoader
from allennlp.data.token_indexers import TokenCharactersIndexer
from allennlp.models import BasicClassifier, Model
from allennlp.modules import TextFieldEmbedder
from allennlp.modules.seq2vec_encoders import BagOfEmbeddingsEncoder
from allennlp.nn import RegularizerApplicator
from allennlp.training import Trainer


def make_classifier(regexes) -> Model:
    """A model of AllenNLP with ELMo."""
    embedders = {"token_embedders": {"elmo": {"type": "elmo-token-embedder", "dropout": 0}}}
    embedder = TextFieldEmbedder.from_params(Params(embedders))
    encoder = BagOfEmbeddingsEncoder(embedder.get_output_dim())
    penalties = [[regex, {"type": "l2", "alpha": 2.0}] for regex in regexes]
    return BasicClassifier(
        Vocabulary(),
        embedder,
        encoder,
        num_labels=2,
        regularizer=RegularizerApplicator.from_params(Params({"regexes": penalties})),
    )


@pytest.mark.parametrize(
    "words, size, padded",
    [
        ([[1, 2], [3]], (3, 4), [[1, 2, 0, 0], [3, 0, 0, 0], [0, 0, 0, 0]]),
        ([[1, 2, 3], [4], [5]], (2, 2), [[1, 2], [4, 0]]),
        ([], (1, 2), [[0, 0]]),
    ],
)
def test_characters_are_padded_and_cut(words, size, padded):
    indexer = TokenCharactersIndexer(min_padding_length=1)
    lengths = dict(zip(("token_characters", "num_token_characters"), size))
    found = indexer.as_padded_tensor_dict({"token_characters": words}, lengths)
    assert found["token_characters"].dtype == torch.int64
    assert found["token_characters"].tolist() == padded


def test_a_regularizer_that_matches_nothing_is_refused_with_the_names_that_there_are():
    model = make_classifier(["layer_scores"])
    with torch.no_grad():
        dict(model.named_parameters())[
            "_text_field_embedder.token_embedder_elmo.mixes.0.layer_scores"
        ].copy_(torch.tensor([1.0, 2.0, 3.0]))
    for _ in range(2):
        assert model.get_regularization_penalty().item() == 2 * (1 + 4 + 9)
    model = make_classifier(["layer_scores", "scalar_parameters"])
    message = r"`regularizer`: 'scalar_parameters' .* called layer_scores.*mixes.0.layer_scores, "
    for _ in range(2):
        with pytest.raises(ConfigurationError, match=message):
            model.get_regularization_penalty()
    with pytest.raises(ConfigurationError, match="'bilm' matches no parameter"):
        # They are frozen.
        make_classifier(["bilm"]).get_regularization_penalty()


@pytest.mark.parametrize("kind", ["gradient_descent", "elmo-recoverable"])
def test_parameters_that_are_to_be_frozen_must_exist(kind, tmp_path):
    model = make_classifier([])

    def construct(regex):
        settings = Params({"type": kind, "no_grad": [regex], "cuda_device": -1})
        return Trainer.from_params(
            settings,
            model=model,
            data_loader=SimpleDataLoader([], 1),
            serialization_dir=str(tmp_path),
        )

    with pytest.raises(ConfigurationError, match="`no_grad`: '_elmo_lstm' matches no parameter"):
        construct("_elmo_lstm")
    construct("gamma")
    frozen = [n for n, p in model.named_parameters() if not p.requires_grad and "bilm" not in n]
    assert frozen == ["_text_field_embedder.token_embedder_elmo.mixes.0.gamma"]


def patched(source: str) -> List[str]:
    """What a module assigns to, or deletes from, the modules and classes of AllenNLP it imports."""
    tree = ast.parse(source)
    theirs = {
        alias.asname or alias.name.partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
        if f"{getattr(node, 'module', alias.name)}.".startswith("allennlp.")
    }
    # Stored attributes, and the arguments of functions such as `setattr`.
    stored = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load)
    ]
    stored += [
        node.args[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("setattr", "delattr")
    ]
    return [ast.unparse(n) for n in stored if ast.unparse(n).partition(".")[0] in theirs]


def test_no_other_file_patches_allennlp():
    package = Path(__file__).parent.parent / "elmo_plugin"
    files = [path for path in package.rglob("*.py") if patched(path.read_text("utf-8"))]
    assert files == [package / "allennlp_patches.py"]


@pytest.mark.parametrize(
    "line, is_patch",
    [
        ("from allennlp.commands import train as t\nt.archive_model = f", True),
        ("from allennlp.nn import Activation\nActivation._registry[Activation] = {}", True),
        ("from allennlp.nn import util\nsetattr(util, name, f)", True),
        ("from allennlp.nn import util\nx.f = util.f\nutil = x", False),
    ],
)
def test_a_patch_is_found(line, is_patch):
    assert bool(patched(line)) == is_patch


def test_an_archive_does_not_name_the_process_that_wrote_it(tagger):
    # The header of a gzip file is 10 bytes, and then the name of its content.
    assert tagger.read_bytes()[10:].startswith(b"model.tar\0")
