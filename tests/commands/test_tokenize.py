"""Commands with `--tokenize` do with raw text what they do with its words."""

import json
import os
from pathlib import Path

import numpy
import pytest

from elmo_plugin import embed_sentences, save_weights
from elmo_plugin.bilm import load_bilm
from elmo_plugin.commands.main import main
from elmo_plugin.corpora import raw_text
from elmo_plugin.corpora.tokenizer import tokenizer_of
from elmo_plugin.elmo.store.dump import dump_embeddings
from elmo_plugin.elmo.store.sentence_vectors import DumpOptions
from elmo_plugin.util.text_files import DecodedPath
from tests.commands.test_errors import failure
from tests.corpora.test_raw_text import RAW as RAW_TEXTS
from tests.elmo.store.reading import SUFFIXES, read, same

RAW = ["Sie spielten z.B. Schach, nicht Dame.", "", "„Ja“, sagte er um 3 Uhr.", "They don't!"]
WORDS = [
    "Sie spielten z.B. Schach , nicht Dame .",
    "",
    "„ Ja “ , sagte er um 3 Uhr .",
    "They don't !",
]


@pytest.fixture(autouse=True)
def folder(in_folder, set_num_threads):
    set_num_threads(1)
    for name, lines in (("raw", RAW), ("words", WORDS)):
        Path(f"{name}.txt").write_text("".join(f"{line}\n" for line in lines))
        Path(f"{name}.d").mkdir()
        for number, line in enumerate(lines[::2]):
            Path(f"{name}.d/{number}").write_text(f"{line}\n")
    raw_text._warn.cache_clear()
    yield
    raw_text._warn.cache_clear()


def run(line):
    main(line.split())


def content(path):
    return {file.name: file.read_bytes() for file in Path(path).iterdir()}


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_vectors_of_raw_text_are_those_of_its_words(suffix):
    run(f"embed words.txt words{suffix} --all")
    run(f"embed raw.txt raw{suffix} --all --tokenize de")
    (found, attributes), (expected, others) = (
        read(Path(f"raw{suffix}")),
        read(Path(f"words{suffix}")),
    )
    assert len(found) >= 3 and same(found, expected)
    assert attributes["text_sha256"] == others["text_sha256"]
    assert attributes["tokenize"] == "de" and "tokenize" not in others


@pytest.mark.parametrize("language", ["ar", "el", "he", "hi", "ru", "zh"])
def test_every_script_has_the_same_vectors_from_both_formats_of_weights(language_model, language):
    Path("raw.txt").write_text(RAW_TEXTS[language])
    save_weights(load_bilm(), "weights.safetensors")
    run(f"embed raw.txt hdf5.hdf5 --all --tokenize {language}")
    run(
        f"embed raw.txt other.hdf5 --all --tokenize {language} --weight-file weights.safetensors "
        f"--options-file {language_model}/options.json"
    )
    (found, _), (expected, _) = read(Path("hdf5.hdf5")), read(Path("other.hdf5"))
    assert found and same(found, expected)
    words = [tokenizer_of(language)(line) for line in RAW_TEXTS[language].split("\n")]
    for number, layers in enumerate(embed_sentences(load_bilm(), words)):
        assert numpy.array_equal(found[str(number)], layers.numpy())


def test_english_is_split_by_the_rules_of_the_treebank():
    Path("raw.txt").write_text("A gray-haired man didn't play.\n")
    Path("words.txt").write_text("A gray-haired man did n't play .\n")
    run("embed raw.txt raw.hdf5 --all --tokenize en")
    run("embed words.txt words.hdf5 --all")
    assert same(read(Path("raw.hdf5"))[0], read(Path("words.hdf5"))[0])


def test_processes_and_folders_split_raw_text_too():
    run("embed raw.txt one.hdf5 --all --batch-size 1 --tokenize de")
    run("embed raw.txt two.hdf5 --all --batch-size 1 --tokenize de --num-workers 2")
    assert Path("one.hdf5").read_bytes() == Path("two.hdf5").read_bytes()
    run("embed raw.d folder --all --tokenize de")
    run("embed words.d folder_of_words --all")
    for name in ("0.hdf5", "1.hdf5"):
        found, expected = (read(Path(folder, name))[0] for folder in ("folder", "folder_of_words"))
        assert found and same(found, expected)


def test_surprisals_of_raw_text_are_those_of_its_words():
    for options in ("", "--sentences"):
        run(f"score words.txt --output words.out --force {options}")
        run(f"score raw.txt --output raw.out --force --tokenize de {options}")
        assert Path("raw.out").read_bytes() == Path("words.out").read_bytes() != b""


def test_minimal_pairs_are_split_by_the_rules_of_their_language(capsys):
    shares = set()
    for end, options in ((".", "--tokenize de"), (" .", "")):
        pair = {
            "sentence_good": f"Er spielt Schach{end}",
            "sentence_bad": f"Er spielen Schach{end}",
        }
        Path("pairs.jsonl").write_text(json.dumps(pair))
        run(f"score --pairs pairs.jsonl {options}")
        shares.add(capsys.readouterr().out)
    assert len(shares) == 1


def test_an_index_of_raw_text_is_one_of_its_words(capsys):
    run("neighbours build words.txt words.index")
    run("neighbours build raw.txt raw.index --tokenize de")
    indexes = content("raw.index"), content("words.index")
    settings = [json.loads(index.pop("index.json")) for index in indexes]
    assert indexes[0] == indexes[1]
    assert [each.pop("tokenize") for each in settings] == ["de", None]
    assert settings[0] == settings[1]
    capsys.readouterr()
    shown = set()
    for query in (
        ["Das [Schach] , z.B. um drei ."],
        ["Das [Schach], z.B. um drei.", "--tokenize", "de"],
    ):
        main(["neighbours", "query", "raw.index", *query])
        shown.add(capsys.readouterr().out)
    assert len(shown) == 1 and "Das [Schach] , z.B. um drei ." in shown.pop()


def test_work_that_was_begun_with_another_tokenizer_is_refused(tmp_path):
    Path("text.txt").write_text("They play chess\n" * 40)

    def stop(num_lines):
        if num_lines:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        path = DecodedPath("text.txt", "strict", "de")
        dump_embeddings(
            load_bilm(), path, "out.hdf5", DumpOptions("all", batch_size=1), False, stop
        )
    # All split this text into the same words.
    command = "embed text.txt out.hdf5 --all --batch-size 1"
    assert "tokenize de, now fr" in failure(f"{command} --tokenize fr")
    assert "tokenize de, now None" in failure(command)
    run(f"{command} --tokenize de")
    run("embed text.txt whole.hdf5 --all --batch-size 1 --tokenize de")
    assert Path("out.hdf5").read_bytes() == Path("whole.hdf5").read_bytes()
    assert "exists" in failure(f"{command} --tokenize fr")
    for step, output in (("score text.txt --output", "s.tsv"), ("neighbours build text.txt", "n")):
        run(f"{step} {output} --tokenize de")
    assert "tokenize de, now fr" in failure("neighbours build text.txt n --tokenize fr")
    run("embed raw.d finished --top --tokenize de")
    run("embed raw.d finished --top --tokenize de")
    assert "failed" in failure("embed raw.d finished --top --tokenize fr")


def test_a_wrong_language_is_refused_before_anything_is_read():
    for command in ("embed raw.txt out.hdf5 --all", "embed raw.d out --all", "score raw.txt"):
        assert "found 'qq'. Give one of af am ar" in failure(f"{command} --tokenize qq")
    assert "found 'qq'" in failure("neighbours build raw.txt out --tokenize qq")
    assert not os.path.exists("out") and not os.path.exists("out.hdf5")


def test_raw_text_without_the_option_is_warned_of_once(caplog):
    run("embed raw.txt raw.hdf5 --all")
    assert [record.message.count("--tokenize") for record in caplog.records] == [2]
    run("score words.txt --output words.out")
    run("neighbours build raw.txt index --tokenize de")
    assert len(caplog.records) == 1
