import json
from pathlib import Path

from elmo_plugin.corpora.squad import Answer
from elmo_plugin.tasks.squad import SquadReader

CORPUS = Path(__file__).parents[3] / "fixtures/corpora/squad"
PASSAGE = "It's a café.  Zoë (b. 1990s) runs it. She's nice!"
WORDS = ["It", "'s", "a", "café", ".", "Zoë", "(", "b.", "1990s", ")", "runs", "it", "."]
WORDS += ["She", "'s", "nice", "!"]


def article(*questions):
    return {"data": [{"title": "T", "paragraphs": [{"context": PASSAGE, "qas": list(questions)}]}]}


def asked(question_id, *answers):
    texts = [{"text": text, "answer_start": PASSAGE.index(text)} for text in answers]
    return {"id": question_id, "question": "Who's  she?", "answers": texts}


def read(tmp_path, whole, **settings):
    path = tmp_path / "x.json"
    path.write_text(json.dumps(whole))
    return list(SquadReader(**settings).read(path))


def covered(instance):
    """The text of the words that are learned, from the original."""
    metadata, span = instance["metadata"].metadata, instance["answer_span"]
    start, _ = metadata["token_offsets"][span.span_start]
    _, end = metadata["token_offsets"][span.span_end]
    return metadata["passage"][start:end]


def test_one_instance_per_question_with_every_field(tmp_path):
    (instance,) = read(tmp_path, article(asked("q", "Zoë", "Zoë (b. 1990s)")))
    assert set(instance.fields) == {"question", "passage", "answer_span", "metadata"}
    assert [token.text for token in instance["question"]] == ["Who", "'s", "she", "?"]
    assert [token.text for token in instance["passage"]] == WORDS
    span = instance["answer_span"]
    assert (span.span_start, span.span_end) == (5, 5)
    assert span.sequence_field is instance["passage"]
    assert instance["metadata"].metadata == {
        "question_id": "q",
        "question": "Who's  she?",
        "passage": PASSAGE,
        "token_offsets": [
            *[(0, 2), (2, 4), (5, 6), (7, 11), (11, 12)],
            *[(14, 17), (18, 19), (19, 21), (22, 27), (27, 28), (29, 33), (34, 36), (36, 37)],
            *[(38, 41), (41, 43), (44, 48), (48, 49)],
        ],
        "answers": ["Zoë", "Zoë (b. 1990s)"],
    }


def test_questions_without_answers_are_read_for_prediction(tmp_path):
    (instance,) = read(tmp_path, article({"id": "q", "question": "Who?"}))
    assert set(instance.fields) == {"question", "passage", "metadata"}
    assert instance["metadata"].metadata["answers"] == []
    alone = SquadReader().text_to_instance("Who?", PASSAGE)
    assert alone["metadata"].metadata["question_id"] is None
    assert [token.text for token in alone["passage"]] == WORDS


def test_the_target_of_an_answer_inside_tokens_is_the_tokens_it_overlaps(tmp_path):
    texts = ["1990", "oë (b. 1990s) r", "café", "é.  Zo", ".  Zoë", "She"]
    questions = [asked(str(number), text) for number, text in enumerate(texts)]
    found = [covered(instance) for instance in read(tmp_path, article(*questions))]
    assert found == ["1990s", "Zoë (b. 1990s) runs", "café", "café.  Zoë", ".  Zoë", "She"]


def test_questions_on_a_passage_share_it(tmp_path):
    first, second = read(tmp_path, article(asked("1", "Zoë"), asked("2", "She")), by_sentence=True)
    for name in ("passage", "passage_sentences"):
        assert first[name] is second[name]
    offsets = [one["metadata"].metadata["token_offsets"] for one in (first, second)]
    assert offsets[0] is offsets[1]


def test_a_reader_does_not_mix_passages_up():
    reader = SquadReader()
    texts = ["Ada is here.", "Bo is there.", "Ada is here."]
    for text in texts:
        instance = reader.text_to_instance("Who?", text, [Answer(text.split()[0], 0)])
        assert " ".join(token.text for token in instance["passage"]) == text.replace(".", " .")
        assert covered(instance) == text.split()[0]


def test_words_get_the_number_of_their_sentence():
    reader = SquadReader(by_sentence=True)
    numbers = {
        PASSAGE: [0] * 5 + [1] * 8 + [2] * 4,
        " \n Hm. \n\n Yes! No. \n": [0, 0, 1, 1, 2, 2],
        "Hm": [0],
    }
    for text, expected in numbers.items():
        instance = reader.text_to_instance("Who?", text)
        sentences = instance["passage_sentences"]
        assert sentences.tensor.tolist() == expected and sentences.padding_value == -1
        assert len(instance["passage"]) == len(expected)
