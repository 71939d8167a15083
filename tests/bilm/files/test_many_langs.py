"""
Folders of ELMoForManyLangs. `fixtures/many_langs` holds random models, and what its own code
computes from them; `scripts/compare_many_langs.py` wrote them and compares more.
"""

import copy
import json
import shutil
from pathlib import Path

import numpy
import pytest
import torch
from allennlp.commands.train import train_model
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import Token, Vocabulary
from allennlp.models import load_archive

from elmo_plugin import Elmo, embed_sentences, load_bilm
from elmo_plugin.bilm import Bilm, BilmOptions, CharacterMap, fingerprint
from elmo_plugin.bilm.character_indexer import CharacterIndexer
from elmo_plugin.bilm.characters import TableMap
from elmo_plugin.bilm.files.folders import save_bilm
from elmo_plugin.bilm.files.many_langs import is_many_langs
from elmo_plugin.bilm.files.trained import TrainedModel
from tests.bilm.oracle import relative_error
from tests.bilm.pretraining.tiny import make_experiment

FIXTURES = Path(__file__).parents[3] / "fixtures"
FOLDERS = FIXTURES / "many_langs"
NAMES = ("both", "characters", "words")
SENTENCES = json.loads((FOLDERS / "sentences.json").read_text(encoding="utf-8"))
SPECIALS = ["<bos>", "<eos>", "<oov>", "<pad>", "<bow>", "<eow>"]


@pytest.fixture
def folder(tmp_path):
    """A copy of the folder that has both characters and words."""
    return shutil.copytree(FOLDERS / "both", tmp_path / "both")


def recorded(name):
    with numpy.load(FOLDERS / name / "layers.npz") as arrays:
        return [torch.from_numpy(arrays[f"arr_{row}"]) for row in range(len(arrays))]


def layers_of(bilm, sentences=SENTENCES):
    with torch.no_grad():
        return bilm(bilm.characters.batch_ids(sentences)).layers


@pytest.mark.parametrize("name", NAMES)
def test_the_indexer_gives_the_ids_of_the_folder(name):
    indexer = CharacterIndexer(bilm=str(FOLDERS / name))
    indexed = indexer.tokens_to_indices([Token(word) for word in SENTENCES[7]], Vocabulary())
    padded = indexer.as_padded_tensor_dict(indexed, {"elmo_tokens": len(SENTENCES[7]) + 1})
    expected = load_bilm(FOLDERS / name).characters.batch_ids([SENTENCES[7]])[0]
    assert torch.equal(padded["elmo_tokens"][:-1], expected)
    assert not padded["elmo_tokens"][-1].any()


@pytest.mark.parametrize("gradients", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_layers_are_those_of_their_code(name, gradients):
    bilm = load_bilm(FOLDERS / name)
    with torch.set_grad_enabled(gradients):
        layers = bilm(bilm.characters.batch_ids(SENTENCES)).layers
    for row, (words, expected) in enumerate(zip(SENTENCES, recorded(name))):
        assert expected.abs().max() > 0.1
        found = layers[:, row, 1 : len(words) + 1]
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_the_fixtures_read_characters_words_or_both(name):
    cnn = load_bilm(FOLDERS / name).options.char_cnn
    assert bool(cnn.characters) == (name != "words") and bool(cnn.words) == (name != "characters")
    assert ("\u3000" in cnn.characters) == (name != "words")


@pytest.mark.parametrize("name", NAMES)
def test_files_of_ours_hold_the_same(name, tmp_path):
    bilm = load_bilm(FOLDERS / name)
    expected = layers_of(bilm)
    bilm.save_pretrained(tmp_path / "pretrained")
    save_bilm(bilm, tmp_path / "exported")
    exported = tmp_path / "exported"
    for again in (
        Bilm.from_pretrained(tmp_path / "pretrained"),
        load_bilm(exported / "options.json", exported / "weights.hdf5"),
    ):
        assert fingerprint(again) == fingerprint(bilm)
        assert torch.equal(layers_of(again), expected)


@pytest.mark.parametrize("name", NAMES)
def test_bfloat16_changes_layers_little(name):
    expected = layers_of(load_bilm(FOLDERS / name))
    found = layers_of(load_bilm(FOLDERS / name, dtype="bfloat16"))
    assert relative_error(found.float(), expected) < 0.1


@pytest.mark.parametrize("name", NAMES)
def test_elmo_with_a_cache_mixes_these_layers(name, tmp_path):
    elmo = Elmo(
        bilm=str(FOLDERS / name), fixed_weights=None, cache=str(tmp_path / "cache"), dropout=0.0
    ).eval()
    for _ in range(2):
        mixed = elmo(elmo.bilm.characters.batch_ids(SENTENCES))
        for row, expected in enumerate(recorded(name)):
            found = mixed[row, : expected.size(1)]
            torch.testing.assert_close(found, expected.mean(dim=0), rtol=1e-3, atol=1e-3)
    # By words, as `elmo embed` reads them.
    for expected, found in zip(recorded(name), embed_sentences(elmo.bilm, SENTENCES)):
        torch.testing.assert_close(torch.as_tensor(found), expected, rtol=1e-5, atol=1e-5)


def table(characters, words=(), /, **changes):
    source = {
        "character_unit": "table",
        **{"n_characters": len(characters) + 1, "max_characters_per_token": 7},
        **{"embedding": {"dim": 2}, "activation": "relu"},
        **({"filters": [[1, 2], [3, 2]], "characters": characters} if characters else {}),
        **({"word_dim": 3, "words": list(words)} if words else {}),
        **changes,
    }
    lstm = {"dim": 4, "projection_dim": 3, "use_skip_connections": True}
    return {"char_cnn": source, "lstm": lstm}


def map_of(*args, **changes):
    return TableMap(BilmOptions.from_dict(table(*args, **changes)).char_cnn)


def test_ids_by_hand():
    characters = map_of([*SPECIALS, "a", "é"], ["<oov>", "aé", "aaaaa"])
    # The names of begin and end are swapped.
    assert characters.word_ids("aé").tolist() == [6, 7, 8, 5, 4, 4, 4, 2]
    # Words are cut before they are looked up.
    assert characters.word_ids("aaaaaé").tolist() == [6, 7, 7, 7, 7, 7, 5, 3]
    assert characters.word_ids("語").tolist() == [6, 3, 5, 4, 4, 4, 4, 1]
    for word in ("<S>", "<bos>"):
        assert characters.word_ids(word).tolist() == [6, 1, 5, 4, 4, 4, 4, 1]
    assert characters.word_ids("</S>").tolist() == [6, 2, 5, 4, 4, 4, 4, 1]
    assert map_of([], ["the", "<oov>"]).batch_ids([["the", "x"], []]).tolist() == [
        [[1], [2]],
        [[0], [0]],
    ]
    assert map_of([*SPECIALS]).word_ids("").tolist() == [6, 5, 4, 4, 4, 4, 4]


def test_ids_of_other_tables_are_refused():
    bilm = Bilm(BilmOptions.from_dict(table([*SPECIALS, "a"], ["<oov>", "a"])))
    ids = bilm.characters.batch_ids([["a"]])
    for column, num_ids in ((2, 8), (-1, 3)):
        wrong = ids.clone()
        wrong[..., column] = num_ids
        with pytest.raises(ValueError, match=f"ids below {num_ids}, found {num_ids}. Give the tok"):
            bilm(wrong)
    with pytest.raises(ValueError, match=r"num_tokens, 8\), found \(1, 1, 50\)"):
        bilm(CharacterMap().batch_ids([["a"]]))


@pytest.mark.parametrize("name", NAMES)
def test_gradients_equal_finite_differences(name):
    bilm = load_bilm(FOLDERS / name).double()
    names, parameters = zip(*bilm.named_parameters())
    ids = bilm.characters.batch_ids([["The", "語", "xyz"], [], ["naïve"]])

    def layers(*values):
        return torch.func.functional_call(bilm, dict(zip(names, values)), (ids,)).layers

    assert torch.autograd.gradcheck(layers, parameters, fast_mode=True)


def test_the_compiled_kernel_has_the_gradients_of_the_windows(monkeypatch):
    """In training; double precision, as above, does not use it."""
    gradients = []
    for can_look_up in (True, False):
        if not can_look_up:
            monkeypatch.setattr("elmo_plugin.bilm.token_layer.can_look_up", lambda *_: False)
        bilm = load_bilm(FOLDERS / "both")
        bilm(bilm.characters.batch_ids(SENTENCES)).layers.square().sum().backward()
        gradients.append({n: p.grad for n, p in bilm.character_encoder.named_parameters()})
    for name, gradient in gradients[0].items():
        assert relative_error(gradient, gradients[1][name]) < 1e-5, name
    for name in ("embedding", "word_embedding"):
        assert not gradients[0][f"{name}.weight"][0].any()


def test_characters_and_words_change_the_fingerprint():
    # The same shapes, weights and `repr`.
    sources = [
        table([*SPECIALS, character], ["<oov>", word])
        for character, word in (("a", "b"), ("a", "c"), ("b", "b"))
    ]
    bilms = [Bilm(BilmOptions.from_dict(source)) for source in sources]
    for bilm in bilms:
        for name, parameter in bilm.named_parameters():
            parameter.data = bilms[0].get_parameter(name).data
    assert len({fingerprint(bilm) for bilm in bilms}) == 3
    with pytest.raises(RuntimeError, match="expected `char_cnn.words` .*'b'.*, found .*'c'"):
        bilms[0].load_state_dict(bilms[1].state_dict())


@pytest.mark.parametrize(
    "changes, expected",
    [
        (dict(characters=SPECIALS[1:]), "different characters with <bos>, <eos>, <bow>, <eow>, <p"),
        (dict(characters=[*SPECIALS, "<pad>"]), "a list of different characters with <bos>, <eos>"),
        (dict(characters=[*SPECIALS, 7]), "among them for `char_cnn.characters`, found ['<bos>', "),
        (dict(words=["a"]), "different words with <oov> among them for `char_cnn.words`, found"),
        (dict(words="<oov>"), "for `char_cnn.words`, found '<oov>'"),
        (dict(filters=None), "`char_cnn.filters` with `characters`, found one"),
        (dict(filters=[[8, 1]]), "widths up to `max_characters_per_token` (7), found [(8, 1)]"),
        (dict(max_characters_per_token=6), "at least 7 and at most 10,000 for `char_cnn.max_char"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_impossible_tables_are_named(changes, expected):
    with pytest.raises(ConfigurationError) as error:
        BilmOptions.from_dict(table(SPECIALS, ["<oov>"], **changes))
    assert expected in str(error.value)


def write(name, text):
    return lambda folder: (folder / name).write_text(text, encoding="utf-8")


def replace(name, old, new):
    def change(folder):
        text = (folder / name).read_text(encoding="utf-8")
        assert old in text
        (folder / name).write_text(text.replace(old, new, 1), encoding="utf-8")

    return change


def remove(name):
    return lambda folder: (folder / name).unlink()


def configure(part, **settings):
    def change(folder):
        config = json.loads((folder / "model.json").read_text())
        config[part].update(settings)
        (folder / "model.json").write_text(json.dumps(config))

    return change


def tensors(name, function):
    def change(folder):
        state = torch.load(folder / name, weights_only=True)
        torch.save(function(state), folder / name)

    return change


def without(name):
    return lambda state: {key: value for key, value in state.items() if key != name}


NO_NUMBER = torch.full((6,), float("nan"))
KNOWN = '{"config_path": "/home/them/cnn_50_100_512_4096_sample.json"}'


@pytest.mark.parametrize(
    "damage, expected",
    [
        (remove("config.json"), "expected config.json in it, found char.dic, encoder.pkl, layers"),
        (write("config.json", "{"), "config.json: expected a JSON object, found JSONDecodeError"),
        (write("config.json", "[]"), "config.json: expected a JSON object, found []"),
        (write("config.json", "{}"), "`config_path` is missing; expected the path of a file"),
        (write("config.json", '{"config_path": 3}'), "path of a file for `config_path`, found 3"),
        (write("config.json", '{"config_path": "a/b"}'), "config.json: expected b beside it"),
        (write("config.json", '{"config_path": "../.."}'), "config.json: expected .. beside it"),
        (write("config.json", '{"config_path": "/"}'), "config.json: expected a file beside it"),
        (
            remove("model.json"),
            "left out only if it is cnn_50_100_512_4096_sample.json or cnn_0_10",
        ),
        (write("model.json", "\x00"), "model.json: expected a JSON object, found JSONDecodeError"),
        (write("model.json", "{}"), "model.json: `encoder.name` is missing; expected elmo"),
        (configure("encoder", name="lstm"), "expected elmo for `encoder.name`, found 'lstm'"),
        (configure("token_embedder", name="lstm"), "expected cnn for `token_embedder.name`, found"),
        (configure("token_embedder", word_dim=0, char_dim=0), "above 0, found 0 for both"),
        (configure("token_embedder", filters=[]), "`token_embedder.filters`, found []"),
        (configure("token_embedder", filters=[[13, 1]]), "widths up to `max_characters_per_token`"),
        (configure("token_embedder", max_characters_per_token=6), "at least 7 and at most"),
        (configure("token_embedder", activation="gelu"), "`token_embedder.activation`, found 'gel"),
        (configure("encoder", dim=10**12), "at most 1,000,000 for `encoder.dim`, found 1000000000"),
        (configure("encoder", proj_clip=-1), "not below 0 for `encoder.proj_clip`, found -1"),
        (
            configure("encoder", dim=9),
            "encoder.pkl: expected floats of shape (36, 6) as forward_la",
        ),
        (configure("encoder", n_layers=1), "encoder.pkl: expected nothing as forward_layer_1"),
        (
            configure("encoder", n_layers=3),
            "as forward_layer_2.input_linearity.weight, found nothi",
        ),
        (remove("char.dic"), "expected char.dic in it, found config.json, encoder.pkl, layers"),
        (remove("word.dic"), "expected word.dic in it"),
        (remove("token_embedder.pkl"), "expected token_embedder.pkl in it"),
        (remove("encoder.pkl"), "expected encoder.pkl in it"),
        (
            write("char.dic", ""),
            "char.dic: expected <bos>, <eos>, <bow>, <eow>, <pad>, <oov> in it",
        ),
        (write("word.dic", "a\t0\n"), "word.dic: expected <oov> in it, found no <oov>"),
        (
            replace("char.dic", "<pad>\t", "<mad>\t"),
            "char.dic: expected <bos>, <eos>, <bow>, <eow>",
        ),
        (replace("word.dic", "\n", "\n\n"), "word.dic:2: expected `entry<TAB>row`, found ''"),
        (replace("word.dic", "\t", "\tx"), "word.dic:1: expected `entry<TAB>row`, found "),
        (replace("word.dic", "\t", "\t\t"), "word.dic:1: expected `entry<TAB>row`, found "),
        (replace("word.dic", "\t", "\t-"), "word.dic:1: expected `entry<TAB>row`, found "),
        (replace("word.dic", "\t", "\t9" * 9), "word.dic:1: expected `entry<TAB>row`, found "),
        (replace("word.dic", "<pad>", "<bos>"), "expected another entry, found <bos>"),
        (replace("word.dic", "\t1\n", "\t0\n"), "expected different rows below 3"),
        (replace("word.dic", "\t1\n", "\t99\n"), "different ones up to 99 for"),
        (replace("word.dic", "\n", "\nmore\t99\n"), "different ones up to 99 for"),
        (lambda folder: (folder / "word.dic").write_bytes(b"\xff\t0\n"), "found the byte 0xff"),
        (write("encoder.pkl", "PK"), "encoder.pkl cannot be read; it is damaged"),
        (tensors("encoder.pkl", list), "expected a state dict of tensors and their names"),
        (
            tensors("token_embedder.pkl", without("projection.bias")),
            "projection.bias, found nothing",
        ),
        (
            tensors("token_embedder.pkl", lambda state: {**state, "projection.bias": NO_NUMBER}),
            "token_embedder.pkl: expected finite numbers in projection.bias, found NaN or infinity",
        ),
        (
            tensors("token_embedder.pkl", lambda state: {**state, "projection.bias": "six"}),
            "expected floats of shape (6,) as projection.bias, found six",
        ),
        (
            tensors("encoder.pkl", lambda state: {**state, "more": torch.zeros(2, 3)}),
            "encoder.pkl: expected nothing as more, found (2, 3) of float32",
        ),
        (
            tensors("encoder.pkl", lambda state: {name: v.long() for name, v in state.items()}),
            "(32, 6) as forward_layer_0.input_linearity.weight, found (32, 6) of int64",
        ),
        # Its own configuration has other widths.
        (write("config.json", KNOWN), "expected floats of shape (512, 2148) as projection.weight"),
    ],
)
def test_damaged_and_half_folders_are_refused_by_name(folder, damage, expected):
    damage(folder)
    assert is_many_langs(folder)
    with pytest.raises(ConfigurationError) as error:
        load_bilm(folder)
    message = str(error.value)
    assert expected in message and str(folder) in message


def test_a_cut_file_of_tensors_is_refused(folder):
    for name in ("token_embedder.pkl", "encoder.pkl"):
        content = (folder / name).read_bytes()
        for size in (0, 100, len(content) // 2, len(content) - 1):
            (folder / name).write_bytes(content[:size])
            with pytest.raises(ConfigurationError, match=f"{name} cannot be read"):
                load_bilm(folder)
        (folder / name).write_bytes(content)


class Evil:
    def __reduce__(self):
        return (Path.touch, (Path("executed"),))


def test_nothing_in_a_pickle_is_executed(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.save({"projection.weight": Evil()}, folder / "token_embedder.pkl")
    with pytest.raises(ConfigurationError, match="holds more than tensors .such as a pickled"):
        load_bilm(folder)
    assert not (tmp_path / "executed").exists()


def test_white_space_is_the_ideographic_space(folder):
    """As lines are stripped there. Of several such entries the last one counts."""
    bilm = load_bilm(folder)
    cnn = bilm.options.char_cnn
    row = cnn.characters.index("\u3000")
    lines = (folder / "char.dic").read_text(encoding="utf-8").splitlines()
    last = cnn.n_characters - 1
    assert f"\u3000\t{row}" in lines
    lines = [f"\u00a0\t{last}", *lines]
    (folder / "char.dic").write_text("\r\n".join(lines) + "\r\n", encoding="utf-8")

    def longer(state):
        weight = state["char_emb_layer.embedding.weight"]
        return {**state, "char_emb_layer.embedding.weight": torch.cat([weight, weight[:1]])}

    tensors("token_embedder.pkl", longer)(folder)
    assert load_bilm(folder).options == bilm.options
    assert torch.equal(layers_of(load_bilm(folder)), layers_of(bilm))


def test_other_folders_are_not_theirs(tmp_path):
    assert not is_many_langs(FIXTURES / "bilm")
    assert not is_many_langs(tmp_path / "none")
    load_bilm(FOLDERS / "both").save_pretrained(tmp_path)
    assert not is_many_langs(tmp_path)


def test_a_model_configuration_is_read_in_the_folder_only(folder, tmp_path):
    (folder / "model.json").rename(tmp_path / "model.json")
    path = json.dumps({"config_path": str(tmp_path / "model.json")})
    (folder / "config.json").write_text(path)
    with pytest.raises(ConfigurationError, match="expected model.json beside it"):
        load_bilm(folder)
    (tmp_path / "model.json").rename(folder / "model.json")
    (folder / "config.json").write_text(r'{"config_path": "C:\\them\\model.json"}')
    load_bilm(folder)


@pytest.mark.parametrize("name", NAMES)
def test_a_language_model_continues_from_its_weights(name, tmp_path):
    load_bilm(FOLDERS / name).save_pretrained(tmp_path / "ours")
    experiment = make_experiment(tmp_path, "sentences", num_epochs=1)
    for part in ("dataset_reader", "model"):
        del experiment[part]["options"]
        experiment[part]["options_file"] = str(tmp_path / "ours/config.json")
    experiment["model"]["initial_weights"] = str(tmp_path / "ours/model.safetensors")
    model = train_model(Params(experiment), str(tmp_path / "run"))
    before = load_bilm(FOLDERS / name).state_dict()
    after = model.bilm.state_dict()
    changed = {name for name, value in before.items() if not torch.equal(after[name], value)}
    assert "lstm.forward_layers.0.input.weight" in changed
    # About 10 steps of 0.01 are no new start.
    for parameter in changed - {"options_json"}:
        assert relative_error(after[parameter], before[parameter]) < 0.5
    exported = TrainedModel.read(tmp_path / "run/model.tar.gz").bilm()
    assert torch.equal(layers_of(exported), layers_of(model.bilm.eval()))


@pytest.mark.parametrize("trainable", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_a_trained_archive_needs_no_folder(name, trainable, tmp_path):
    folder = str(shutil.copytree(FOLDERS / name, tmp_path / "folder"))
    (tmp_path / "tagged.txt").write_text(
        "The###D play###N began###V\n话剧###N 八点###X\nnaïve###A\n🎭###N\n", encoding="utf-8"
    )
    elmo = {"type": "elmo-token-embedder", "bilm": folder, "trainable": trainable}
    indexer = {"type": "elmo-characters", "bilm": folder}
    config = {
        "dataset_reader": {"type": "sequence_tagging", "token_indexers": {"elmo": indexer}},
        "train_data_path": str(tmp_path / "tagged.txt"),
        "model": {
            "type": "simple_tagger",
            "text_field_embedder": {"token_embedders": {"elmo": elmo}},
            "encoder": {"type": "pass_through", "input_dim": 12},
        },
        "data_loader": {"batch_size": 2},
        "trainer": {
            **{"num_epochs": 1, "optimizer": {"type": "sgd", "lr": 0.5}, "cuda_device": -1},
            "run_confidence_checks": False,
        },
    }
    before = load_bilm(folder).state_dict()
    model = train_model(Params(config), str(tmp_path / "run")).eval()
    after = model.text_field_embedder.token_embedder_elmo.bilm.state_dict()
    changed = {name for name, value in before.items() if not torch.equal(after[name], value)}
    # The archive holds the name of the folder.
    changed.discard("options_json")
    assert bool(changed) == trainable
    shutil.rmtree(folder)
    archive = load_archive(tmp_path / "run/model.tar.gz")
    for name, value in model.state_dict().items():
        assert torch.equal(archive.model.state_dict()[name], value), name
    instance = archive.dataset_reader.text_to_instance([Token(word) for word in SENTENCES[4]])
    archive.dataset_reader.apply_token_indexers(instance)
    expected = model.forward_on_instance(copy.deepcopy(instance))["logits"]
    assert numpy.array_equal(archive.model.eval().forward_on_instance(instance)["logits"], expected)
