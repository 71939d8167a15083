import gzip
import json
from pathlib import Path

import pytest
import torch
from allennlp.commands.train import train_model_from_file
from allennlp.models import load_archive
from allennlp.predictors import Predictor

import elmo_plugin.plugin  # noqa: F401
from elmo_plugin.modules.cove_encoder import CoveEncoder
from elmo_plugin.modules.cove_files import read_cove_encoder
from elmo_plugin.tasks.translation import TranslationModel, TranslationPredictor, TranslationReader
from tests.commands import running

FIXTURES = Path(__file__).parents[3] / "fixtures"
LINES = (FIXTURES / "predict/translation.jsonl").read_text(encoding="utf-8").splitlines()


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("translation") / "out"
    train_model_from_file(FIXTURES / "experiments/translation.jsonnet", out)
    return out


@pytest.fixture(scope="module")
def archive(run_folder):
    return load_archive(run_folder / "model.tar.gz")


@pytest.fixture
def predictor(archive):
    return Predictor.from_archive(archive)


def test_reader_model_and_predictor_have_the_same_name(predictor):
    assert isinstance(predictor, TranslationPredictor)
    assert isinstance(predictor._model, TranslationModel)
    assert isinstance(predictor._dataset_reader, TranslationReader)


def test_training_learns_to_translate(run_folder):
    metrics = json.loads((run_folder / "metrics.json").read_text())
    assert metrics["best_validation_BLEU"] > 20
    assert metrics["best_validation_perplexity"] < 4


def test_a_sentence_is_translated(predictor):
    output = predictor.predict("The girl saw the boat.")
    assert list(output) == ["tokens", "translation"]
    assert output["tokens"] == ["The", "girl", "saw", "the", "boat", "."]
    assert output["translation"].endswith(" .")


def test_a_line_gives_the_same_alone_and_in_a_batch(predictor):
    inputs = [predictor.load_line(line) for line in LINES]
    together = predictor.predict_batch_json(inputs)
    assert together == [predictor.predict_json(line) for line in inputs]
    assert predictor.predict_batch_json([]) == []


def test_parallel_text_keeps_its_reference_and_text_is_a_line_each(archive):
    predictor = Predictor.from_archive(archive, extra_args={"output_format": "text"})
    instances = list(archive.validation_dataset_reader.read(FIXTURES / "corpora/mt/test.en"))[:3]
    outputs = predictor.predict_batch_instance(instances)
    references = (FIXTURES / "corpora/mt/test.de").read_text(encoding="utf-8").splitlines()
    assert [output["reference"] for output in outputs] == references[:3]
    assert predictor.dump_line(outputs[0]) == outputs[0]["translation"] + "\n"


@pytest.mark.parametrize(
    "line, message",
    [
        ("A dog runs.", 'expected a JSON object like {"sentence": "A dog runs."}'),
        ('{"text": "A dog."}', 'expected "sentence" with a text or "tokens"'),
        ('{"sentence": " "}', "at least one word"),
        ('{"tokens": ["a", ""]}', "none of them empty"),
    ],
)
def test_a_wrong_line_is_named_by_its_number(predictor, line, message):
    predictor.load_line(LINES[0])
    with pytest.raises(ValueError, match=f"line 2: .*{message}"):
        predictor.load_line(line + "\n")


def test_the_encoder_is_exported_and_read_again(archive, run_folder, tmp_path, capsys):
    out = tmp_path / "cove.pth"
    running.run("elmo-export-cove", run_folder / "model.tar.gz", out)
    assert f"{out}: two layers of 32 per direction over word vectors of 100 (" in (
        capsys.readouterr().out
    )
    encoder = read_cove_encoder(out)
    expected = archive.model.eval().cove_encoder
    vectors, mask = torch.randn(2, 4, 100), torch.ones(2, 4, dtype=torch.bool)
    torch.testing.assert_close(encoder(vectors, mask), expected(vectors, mask))
    assert isinstance(expected, CoveEncoder)
    assert "exists. Give --force" in running.failure("elmo-export-cove", run_folder, out)
    running.run("elmo-export-cove", run_folder, out, "--force")


def test_bad_input_ends_in_one_sentence(tmp_path):
    failure = running.failure("elmo-export-cove", "none.tar.gz", tmp_path / "x.pth")
    assert "none.tar.gz does not exist" in failure
    folder = tmp_path / "run"
    folder.mkdir()
    torch.save(torch.nn.Linear(2, 2).state_dict(), folder / "best.th")
    failure = running.failure("elmo-export-cove", folder, tmp_path / "x.pth")
    assert "holds no encoder of CoVe" in failure
    assert "is a folder" in running.failure("elmo-export-cove", folder, tmp_path)
    assert not (tmp_path / "x.pth").exists()


def test_compressed_parallel_text_is_read(archive, tmp_path):
    for language in ("en", "de"):
        text = (FIXTURES / f"corpora/mt/val.{language}").read_bytes()
        (tmp_path / f"val.{language}.gz").write_bytes(gzip.compress(text))
    reader = archive.validation_dataset_reader
    assert len(list(reader.read(tmp_path / "val.en"))) == 24
    assert len(list(reader.read(tmp_path / "val.en.gz"))) == 24
