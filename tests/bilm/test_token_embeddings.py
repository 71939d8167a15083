"""A biLM over token embeddings: the same in every respect but where the token layer comes from."""

import json
import shutil

import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import Token, TokenIndexer, Vocabulary
from allennlp.modules import TokenEmbedder

from elmo_plugin import Elmo, embed_sentences
from elmo_plugin.bilm import Bilm, BilmOptions, load_bilm, save_weights
from elmo_plugin.bilm.files.folders import save_bilm
from elmo_plugin.bilm.files.softmax import SoftmaxWeights, find_softmax
from elmo_plugin.bilm.files.trained import TrainedModel
from tests.bilm.oracle import SlowBilm, assert_layers_equal, read_arrays
from tests.bilm.trained import COUNTS, WORDS, StandIn, save_run, vocabulary

SENTENCES = [["the", "naïve", "<S>", "unheard"], ["🦉"], [], ["The", "the", "", "@@NEWLINE@@"]]


def make_source(make_options, **changes):
    """Options as bilm-tf writes them: no `char_cnn`, and how many words there are."""
    source = make_options(**changes)
    del source["char_cnn"]
    return {**source, "n_tokens_vocab": len(WORDS)}


@pytest.fixture
def make_tokens(make_options):
    def make(seed=0, words=WORDS, stateful=False, warm_up=False, **changes):
        source = {**make_source(make_options, **changes), "n_tokens_vocab": len(words)}
        options = BilmOptions.from_dict(source).with_words(words)
        bilm = Bilm(options, stateful=stateful, warm_up=warm_up)
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for parameter in bilm.parameters():
                parameter.normal_(0.0, 1.5 * parameter.size(-1) ** -0.5, generator=generator)
            bilm.character_encoder.reset_padding()
        return bilm.eval()

    return make


@pytest.fixture
def files(make_options, make_tokens, tmp_path):
    """What bilm-tf leaves: options, a dump, and the vocabulary beside them."""
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "options.json").write_text(json.dumps(make_source(make_options)))
    (folder / "vocabulary.txt").write_text("\n".join(WORDS) + "\n", encoding="utf-8")
    save_weights(make_tokens(seed=3), folder / "weights.hdf5")
    return folder


def load(folder, **settings):
    return load_bilm(folder / "options.json", folder / "weights.hdf5", **settings)


def slow_twin(bilm, path):
    save_weights(bilm, path)
    return SlowBilm(bilm.options.source, read_arrays(path))


@pytest.mark.parametrize(
    "changes",
    [
        dict(),
        dict(n_layers=1, use_skip_connections=False),
        dict(projection_dim=None),
        dict(bidirectional=False),
        dict(warm_up=True),
    ],
)
@pytest.mark.parametrize("gradients", [True, False])
def test_it_agrees_with_the_slow_loop(make_tokens, tmp_path, changes, gradients):
    bilm = make_tokens(**changes)
    slow = slow_twin(bilm, tmp_path / "weights.hdf5")
    states = slow.run([])[1] if bilm.warm_up else None
    with torch.set_grad_enabled(gradients):
        output = bilm(bilm.characters.batch_ids(SENTENCES))
    for row, words in enumerate(SENTENCES):
        assert_layers_equal(output.layers[:, row, : len(words) + 2], slow.run(words, states)[0])
        assert not output.layers[:, row, len(words) + 2 :].any()


def test_a_dump_of_bilm_tf_is_read_with_its_options_and_vocabulary(files, make_options):
    arrays = read_arrays(files / "weights.hdf5")
    assert arrays["embedding"].shape == (len(WORDS), 6)
    assert {name.split("/")[0] for name in arrays} == {"embedding", "RNN_0", "RNN_1"}
    slow = SlowBilm({**make_source(make_options), "vocabulary": WORDS}, arrays)
    for words, found in zip(SENTENCES, embed_sentences(load(files), SENTENCES)):
        if words:
            assert_layers_equal(found, slow.layers(words)[:, 1:-1])


def test_words_are_rows_and_all_others_are_unknown(make_tokens):
    ids = make_tokens().characters.batch_ids([["<S>", "</S>", "<UNK>", "the", "THE"], ["🦉"]])
    assert ids.tolist() == [[[1], [2], [3], [4], [3]], [[7], [0], [0], [0], [0]]]


def refused(folder, expected):
    with pytest.raises(ConfigurationError) as error:
        load(folder)
    assert expected in str(error.value)


def test_what_does_not_fit_is_named(files, make_bilm, make_options):
    (files / "vocabulary.txt").write_text("\n".join(WORDS[:-1]) + "\n")
    refused(files, "expected shape (6, 6) for tensor embedding, found (7, 6)")
    (files / "vocabulary.txt").unlink()
    refused(files, "vocabulary.txt does not exist: expected the words of a softmax or")
    source = make_source(make_options)
    del source["n_tokens_vocab"]
    (files / "options.json").write_text(json.dumps(source))
    (files / "vocabulary.txt").write_text("\n".join([*WORDS, "more"]) + "\n")
    refused(files, "expected shape (8, 6) for tensor embedding, found (7, 6)")
    save_weights(make_bilm(), files / "weights.hdf5")
    refused(files, "expected shape (8, 6) for tensor embedding, found none")
    with pytest.raises(
        ConfigurationError, match="token embeddings in `vocabulary`, which is missing"
    ):
        Bilm(BilmOptions.from_dict(source))
    marks = ["<S>", "</S>", "<UNK>"]
    for words in (["the"], "words", [*marks, 7], [*marks, "the", "the"]):
        with pytest.raises(
            ConfigurationError, match="with <S>, </S>, <UNK> among them for `vocabulary`"
        ):
            BilmOptions.from_dict({**source, "vocabulary": words})


def test_ids_of_characters_are_refused(make_tokens, make_bilm):
    ids = make_bilm().characters.batch_ids([["the"]])
    with pytest.raises(ValueError, match=r"\(batch_size, num_tokens, 1\), found \(1, 1, 50\)"):
        make_tokens()(ids)
    with pytest.raises(ValueError, match="ids below 8, found 8. Give the token indexer"):
        make_tokens()(torch.tensor([[[8]]]))


def test_the_indexer_follows_the_options(files):
    indexer = TokenIndexer.from_params(
        Params({"type": "elmo-characters", "options_file": str(files / "options.json")})
    )
    indexed = indexer.tokens_to_indices([Token("the"), Token("unheard")], Vocabulary())
    padded = indexer.as_padded_tensor_dict(indexed, {"elmo_tokens": 3})
    assert padded["elmo_tokens"].tolist() == [[4], [3], [0]]
    assert indexer != TokenIndexer.from_params(Params({"type": "elmo-characters"}))


def test_a_trained_model_holds_the_words(files, tmp_path):
    settings = {
        name: str(files / file)
        for name, file in (("options_file", "options.json"), ("weight_file", "weights.hdf5"))
    }
    elmo = TokenEmbedder.from_params(Params({"type": "elmo-token-embedder", **settings})).eval()
    (tmp_path / "archive").mkdir()
    torch.save(elmo.state_dict(), tmp_path / "archive" / "weights.th")
    ids = load(files).characters.batch_ids(SENTENCES)
    expected = elmo(ids)
    shutil.rmtree(files)
    again = Elmo(**settings, serialization_dir=str(tmp_path / "archive")).eval()
    again.load_state_dict(elmo.state_dict())
    assert torch.equal(again(again.bilm.characters.batch_ids(SENTENCES)), expected)
    indexer = TokenIndexer.from_params(
        Params({"type": "elmo-characters", "options_file": settings["options_file"]}),
        serialization_dir=str(tmp_path / "archive"),
    )
    assert indexer.tokens_to_indices([Token("🦉")], Vocabulary())["elmo_tokens"].tolist() == [[7]]


def test_weights_of_other_words_are_refused(make_tokens, make_bilm, tmp_path):
    others = make_tokens(words=[*WORDS[:-1], "other"])
    with pytest.raises(RuntimeError, match="a `vocabulary` of 7 words, found 7 others"):
        make_tokens().load_state_dict(others.state_dict())
    archive = save_run(StandIn(others), vocabulary(tmp_path), tmp_path / "run")[1]
    with pytest.raises(ConfigurationError, match="a `vocabulary` of 7 words, found 7 others"):
        TrainedModel.read(archive).parameters_of(make_tokens().options)
    with pytest.raises(ConfigurationError, match="expected `char_cnn` .*, found None"):
        TrainedModel.read(archive).parameters_of(make_bilm().options)
    archive = save_run(StandIn(make_bilm()), Vocabulary(), tmp_path / "characters")[1]
    with pytest.raises(ConfigurationError, match="expected `char_cnn` None, found "):
        TrainedModel.read(archive).parameters_of(make_tokens().options)


def test_an_export_is_read_back(make_tokens, tmp_path):
    bilm = make_tokens(seed=4)
    softmax = SoftmaxWeights(torch.randn(7, 6), torch.randn(7), WORDS, COUNTS)
    save_bilm(bilm, tmp_path / "out", softmax)
    source = json.loads((tmp_path / "out" / "options.json").read_text())
    assert source["n_tokens_vocab"] == 7 and not {"char_cnn", "vocabulary"} & source.keys()
    read = load(tmp_path / "out")
    assert read.options == bilm.options
    for found, expected in zip(read.parameters(), bilm.parameters()):
        assert torch.equal(found, expected)
    found = find_softmax(tmp_path / "out" / "softmax.hdf5", bilm.options)
    assert (found.words, found.counts) == (WORDS, COUNTS)
