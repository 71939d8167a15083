import pytest
import torch
from allennlp.data import Token, Vocabulary
from allennlp.modules import ConditionalRandomField
from allennlp.modules.conditional_random_field import allowed_transitions

import elmo_plugin.plugin  # noqa: F401
from elmo_plugin.modules.viterbi import decode
from tests.tasks import slow
from tests.tasks.small import build, make_batch


def test_short_words_have_vectors_in_bfloat16_with_the_cnn_of_allennlp(vocab, instances):
    cnn = {"type": "cnn", "embedding_dim": 4, "num_filters": 5, "ngram_filter_sizes": [4]}
    characters = {"embedding_dim": 4, "vocab_namespace": "token_characters"}
    embedder = {"type": "character_encoding", "embedding": characters, "encoder": cnn}
    words = {"type": "embedding", "embedding_dim": 6}
    embedders = {"token_embedders": {"words": words, "characters": embedder}}
    model = build("ner", vocab, text_field_embedder=embedders)
    tokens = make_batch(vocab, instances[:9], elmo=False)["tokens"]
    with torch.no_grad():
        exact = model.embed(tokens)[1]
        with torch.autocast("cpu", torch.bfloat16):
            assert torch.equal(model.embed(tokens)[1], exact)
    assert exact.abs().max() < 10


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
    model = build("ner", tiny_vocab, dropout=0.0).eval()
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


def test_answers_are_the_best_legal_sequences_of_allennlp(tiny_vocab):
    model = build("ner", tiny_vocab)
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


def test_a_type_that_training_never_saw_is_scored_but_not_learned_from(vocab, reader, tmp_path):
    path = tmp_path / "x.conll"
    path.write_text("Ada I-NEW\nsings O\n\nAda I-PER\n")
    unseen, known = reader.read(path)
    model = build("ner", vocab).eval()
    both = model(**make_batch(vocab, [unseen, known], elmo=False))["loss"]
    assert model.get_metrics(reset=True)["recall-NEW"] == 0.0
    alone = model(**make_batch(vocab, [known], elmo=False))["loss"]
    torch.testing.assert_close(2 * both, alone)
    assert model(**make_batch(vocab, [unseen], elmo=False))["loss"].item() == 0.0
