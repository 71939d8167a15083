import itertools
from pathlib import Path

import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import DatasetReader, Token, Vocabulary
from allennlp.models import Model
from allennlp.modules import ConditionalRandomField
from allennlp.modules.conditional_random_field import allowed_transitions

import elmo_plugin.plugin  # noqa: F401
from elmo_plugin.modules.viterbi import decode
from tests.tasks.batches import learn, make_batch, placement
from tests.tasks.ner import slow

FIXTURES = Path(__file__).parents[3] / "fixtures"
CORPUS = FIXTURES / "corpora/ner/train.conll"
EXPERIMENT = Params.from_file(FIXTURES / "experiments/ner_elmo.jsonnet").as_dict(quiet=True)


def build(vocab: Vocabulary, **settings) -> Model:
    """A small model of random weights."""
    embedder = EXPERIMENT["model"]["text_field_embedder"]["token_embedders"]["characters"]
    return Model.from_params(
        vocab=vocab,
        params=Params(
            {
                "type": "elmo-ner",
                "text_field_embedder": {
                    "token_embedders": {
                        "words": {"type": "embedding", "embedding_dim": 6},
                        "characters": {**embedder, "embedding_dim": 4, "num_filters": 5},
                    }
                },
                "lower_encoder": {"type": "elmo-bilstm", "hidden_size": 7},
                "upper_encoder": {"type": "elmo-bilstm", "hidden_size": 3},
                **settings,
            }
        ),
    )


@pytest.fixture(scope="module")
def reader():
    return DatasetReader.from_params(Params(EXPERIMENT["dataset_reader"]).duplicate())


@pytest.fixture(scope="module")
def instances(reader):
    return list(reader.read(CORPUS))


def test_short_words_have_vectors_in_bfloat16_with_the_cnn_of_allennlp(vocab, instances):
    cnn = {"type": "cnn", "embedding_dim": 4, "num_filters": 5, "ngram_filter_sizes": [4]}
    characters = {"embedding_dim": 4, "vocab_namespace": "token_characters"}
    embedder = {"type": "character_encoding", "embedding": characters, "encoder": cnn}
    words = {"type": "embedding", "embedding_dim": 6}
    embedders = {"token_embedders": {"words": words, "characters": embedder}}
    model = build(vocab, text_field_embedder=embedders)
    tokens = make_batch(vocab, instances[:9], elmo=False)["tokens"]
    with torch.no_grad():
        exact = model.embed(tokens)[1]
        with torch.autocast("cpu", torch.bfloat16):
            assert torch.equal(model.embed(tokens)[1], exact)
    assert exact.abs().max() < 10


@pytest.mark.parametrize(
    "at, lower_input, upper_input", [("input", 43, 14), ("output", 11, 46), ("both", 43, 46)]
)
def test_widths_follow_the_placement(vocab, at, lower_input, upper_input):
    model = build(vocab, placement=placement(at))
    assert model.lower_encoder.get_input_dim() == lower_input
    assert model.upper_encoder.get_input_dim() == upper_input


@pytest.fixture(scope="module")
def tiny(reader):
    sentences = [
        ("Ada met U .", "U-PER O U-LOC O"),
        ("of Ada Lind Oslo", "O B-PER L-PER U-LOC"),
        ("I", "O"),
    ]
    instances = []
    for words, tags in sentences:
        instance = reader.text_to_instance([Token(w) for w in words.split()], tags.split())
        reader.apply_token_indexers(instance)
        instances.append(instance)
    return instances


@pytest.fixture(scope="module")
def tiny_vocab(tiny):
    """With so few tags that every sequence of four can be listed."""
    return Vocabulary.from_instances(tiny)


def test_forward_is_what_the_equations_say(tiny, tiny_vocab):
    torch.manual_seed(3)
    model = build(tiny_vocab, dropout=0.0).eval()
    assert model.tags == ["O", "U-LOC", "U-PER", "B-PER", "L-PER"]
    tensors = make_batch(tiny_vocab, tiny, elmo=False)
    weights = {name: w.detach().double() for name, w in model.state_dict().items()}
    embedders = slow.below(weights, "text_field_embedder")
    characters = slow.below(embedders, "token_embedder_characters")
    log_likelihoods = []
    for number, instance in enumerate(tiny):
        words, gold = instance["tokens"], instance["tags"].labels
        vectors = []
        for position in range(len(words.tokens)):
            word = tensors["tokens"]["words"]["tokens"][number, position]
            ids = tensors["tokens"]["characters"]["token_characters"][number, position]
            vector = embedders["token_embedder_words.weight"][word]
            cnn = slow.character_cnn(characters, ids[ids != 0].tolist())
            # In the order of the embedders' names.
            vectors.append(torch.cat([cnn, vector]))
        logits = slow.logits(weights, vectors)
        field = slow.below(weights, "crf")
        tags = [model.tags.index(tag) for tag in gold]
        log_likelihoods.append(slow.log_likelihood(field, logits, tags))
    loss = model(**tensors)["loss"].double()
    torch.testing.assert_close(loss, -torch.stack(log_likelihoods).mean(), rtol=1e-5, atol=1e-5)


def test_answers_are_the_best_of_all_legal_sequences_and_those_of_allennlp(tiny_vocab):
    model = build(tiny_vocab)
    torch.manual_seed(4)
    logits = torch.randn(6, 4, len(model.tags)) * 2
    mask = torch.arange(4) < torch.tensor([4, 3, 2, 1, 4, 4]).unsqueeze(1)
    found = decode(logits, mask, *model.scores_of_sequences())
    oracle = ConditionalRandomField(
        len(model.tags), allowed_transitions("BIOUL", dict(enumerate(model.tags)))
    )
    weights = {n: w for n, w in model.crf.state_dict().items() if n != "_constraint_mask"}
    oracle.load_state_dict(weights, strict=False)
    assert found == [tags for tags, _ in oracle.viterbi_tags(logits, mask)]
    field = {name: w.detach() for name, w in model.crf.state_dict().items()}
    for sentence, length, answer in zip(logits, mask.sum(1).tolist(), found):
        every = itertools.product(range(len(model.tags)), repeat=length)
        legal = [list(t) for t in every if is_legal([model.tags[index] for index in t])]
        assert answer == max(legal, key=lambda t: slow.score(field, sentence, t).item())


def is_legal(tags) -> bool:
    """Whether tags are BIOUL: every entity opened is closed by its own type."""
    open_type = None
    for tag in tags:
        prefix, _, kind = tag.partition("-")
        if (prefix in "IL") != (open_type is not None) or prefix in "IL" and kind != open_type:
            return False
        open_type = kind if prefix in "BI" else None
    return open_type is None


def test_answers_are_legal_whatever_the_scores(vocab, instances):
    torch.manual_seed(0)
    model = build(vocab).eval()
    with torch.no_grad():
        model.tag_projection.bias.copy_(torch.randn(len(model.tags)) * 20)
    for tags in model(**make_batch(vocab, instances[:30], elmo=False))["tags"]:
        assert is_legal(tags)


def test_dropout_silences_the_same_inputs_in_all_words_of_a_sentence(vocab, instances):
    model = build(vocab)
    seen = []
    for encoder in (model.lower_encoder, model.upper_encoder):
        encoder.register_forward_pre_hook(lambda _, inputs: seen.append(inputs))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(0.1)
    model.train()(**make_batch(vocab, instances[:8], elmo=False))
    for vectors, mask in seen:
        silenced = vectors.eq(0).all(dim=1)
        assert silenced.any() and not silenced.all()
        for sentence, length, columns in zip(vectors, mask.sum(1).tolist(), silenced):
            assert (sentence[:length, columns] == 0).all()
            assert (sentence[:length, ~columns] != 0).all()


def test_a_short_word_has_characters_too(vocab, reader):
    vectors = []
    model = build(vocab)
    for filters in model.text_field_embedder.token_embedder_characters.filters:
        # Else both words of a pair may be below the threshold of all filters.
        torch.nn.init.ones_(filters.bias)
    for word in ("I", "U", "UK", "UN"):
        instance = reader.text_to_instance([Token(word)])
        reader.apply_token_indexers(instance)
        tokens = make_batch(vocab, [instance], elmo=False)["tokens"]
        vectors.append(model.text_field_embedder(tokens)[0, 0, :5])
    for first, second in itertools.combinations(vectors, 2):
        assert not torch.equal(first, second)


def test_a_type_that_training_never_saw_is_scored_but_not_learned_from(vocab, reader, tmp_path):
    path = tmp_path / "x.conll"
    path.write_text("Ada I-NEW\nsings O\n\nAda I-PER\n")
    unseen, known = reader.read(path)
    model = build(vocab).eval()
    both = model(**make_batch(vocab, [unseen, known], elmo=False))["loss"]
    assert model.get_metrics(reset=True)["recall-NEW"] == 0.0
    alone = model(**make_batch(vocab, [known], elmo=False))["loss"]
    torch.testing.assert_close(2 * both, alone)
    assert model(**make_batch(vocab, [unseen], elmo=False))["loss"].item() == 0.0


def test_a_training_corpus_without_tags_is_refused(reader, tmp_path):
    path = tmp_path / "x.conll"
    path.write_text("Ada\nsings\n")
    with pytest.raises(ConfigurationError, match="elmo-ner: training needs tags"):
        build(Vocabulary.from_instances(reader.read(path)))


def test_the_model_can_learn_a_corpus_by_heart(vocab, instances):
    torch.manual_seed(1)
    model = build(
        vocab,
        dropout=0.0,
        placement=placement("input"),
        lower_encoder={"type": "elmo-bilstm", "hidden_size": 32},
        upper_encoder={"type": "elmo-bilstm", "hidden_size": 16},
    )
    for name, parameter in model.named_parameters():
        if "token_embedder_words" in name:
            torch.nn.init.normal_(parameter)
    batches = [make_batch(vocab, instances[first : first + 5]) for first in range(0, 20, 5)]
    assert learn(model, batches, rate=0.02, num_epochs=40)["f1-measure-overall"] == 1.0
