import asyncio
import json
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import chain

import pytest
import torch
from fastapi.testclient import TestClient

from elmo_plugin import load_predictor
from elmo_plugin.analysis.neighbours import ContextIndex, Query, build_index, find_neighbours
from elmo_plugin.bilm import load_bilm
from elmo_plugin.elmo.embed import embed_sentences
from elmo_plugin.serve.app import make_app
from elmo_plugin.serve.served_task import Limits, ServedTask, load_tasks, read_card
from elmo_plugin.serve.word_analyzer import WordAnalyzer, shipped_contexts
from elmo_plugin.tasks.prediction import MarkedWords
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.files import shipped_archives
from tests.analysis.language_model import make_softmax
from tests.commands import running
from tests.guide import FIXTURES
from tests.serve.stub_server import StubPredictor
from tests.trained import NUM_EPOCHS
from tests.waiting import wait_until

LIMITS = Limits(max_bytes=4000, max_words=100, max_characters=50)


each_task = pytest.mark.parametrize("task", NUM_EPOCHS)


class Predictor(StubPredictor):
    """One that fails at some words, and waits for permission if it has to."""

    def __init__(self):
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.batches = []

    def predict_batch_json(self, lines):
        self.batches.append([line["tokens"] for line in lines])
        assert self.may_answer.wait(10)
        if any("fail" in line["tokens"] for line in lines):
            # The model's, not one of a request that it refuses.
            raise ValueError("cannot read this")
        return [{"tokens": line["tokens"]} for line in lines]

    def draw(self, output):
        return [MarkedWords(output["tokens"], [(0, 0, "first")])]


@pytest.fixture
def predictor():
    return Predictor()


@pytest.fixture
def make_client(predictor):
    def make(**options):
        task = ServedTask(predictor, LIMITS)
        return TestClient(make_app({"ner": task}, limits=LIMITS, **options))

    return make


@pytest.fixture
def client(make_client):
    with make_client() as client:
        yield client


def ask(client, *words):
    return client.post("/predict/ner", content=json.dumps({"tokens": words}))


def test_the_answer_is_the_line_of_the_predictor(client):
    answer = ask(client, "a", "b")
    assert answer.status_code == 200
    assert answer.content == b'{"tokens": ["a", "b"]}\n'
    assert answer.headers["content-type"] == "application/json"
    drawn = client.post("/draw/ner", content='{"tokens": ["a", "b"]}').json()
    part = {"words": ["a", "b"], "spans": [[0, 0, "first"]], "title": "", "spaces": [" ", " "]}
    assert drawn == [part]


@pytest.mark.parametrize(
    "body, status, message",
    [
        (b'{"tokens": ["' + 5000 * b"a" + b'"]}', 413, "at most 4,000 bytes, found more"),
        (json.dumps({"tokens": ["a"] * 101}), 413, "at most 100 words .* found 101"),
        (json.dumps({"tokens": ["a" * 51]}), 413, "at most 50 characters, found one of 51"),
        (b"[1]", 422, "the request: expected a JSON object"),
        (b"", 422, "the request: expected a JSON object"),
        (b'{"tokens": ["\xff"]}', 422, "the request: expected UTF-8"),
        (b'{"tokens": ["\\ud800"]}', 422, "half of a character"),
        (b"[" * 3000, 422, "the request: expected a JSON object"),
    ],
)
def test_a_request_of_another_form_or_size_is_refused(client, body, status, message):
    answer = client.post("/predict/ner", content=body)
    assert answer.status_code == status
    assert re.search(message, answer.json()["detail"])


def test_an_unknown_task_and_an_unknown_method_are_refused(client):
    assert client.post("/predict/poetry", content="{}").status_code == 404
    assert client.get("/predict/ner").status_code == 405


def test_only_the_request_that_fails_fails_and_the_log_says_why(client, predictor, caplog):
    predictor.may_answer.clear()
    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(ask, client, "first")
        wait_until(lambda: predictor.batches)
        others = [pool.submit(ask, client, word) for word in ("a", "fail", "b")]
        wait_until(lambda: client.get("/health").json()["waiting"] == 3)
        predictor.may_answer.set()
    assert sorted(predictor.batches[1]) == [["a"], ["b"], ["fail"]]
    answers = [each.result() for each in (first, *others)]
    assert [answer.status_code for answer in answers] == [200, 200, 500, 200]
    failed = answers[2]
    assert "cannot read this" not in failed.text and "log says why" in failed.json()["detail"]
    assert "cannot read this" in caplog.text


def test_a_model_that_cannot_answer_the_example_is_noticed_before_requests(predictor):
    sizes = []

    def predict(lines):
        if len(lines) > 2:
            raise RuntimeError("out of memory")
        sizes.append(len(lines))
        return lines

    predictor.predict_batch_json = predict
    task = ServedTask(predictor, LIMITS)
    task.warm_up(2)
    assert sizes == [1, 2]
    with pytest.raises(RuntimeError, match="out of memory"):
        task.warm_up(3)


def test_health_says_that_nothing_is_answered_any_more(make_client, monkeypatch):
    # An error of ours.
    monkeypatch.setattr("elmo_plugin.serve.batches.Batches._answer", lambda *_: [][0])
    with make_client() as client:
        assert client.get("/health").json() == {"status": "ok", "tasks": ["ner"], "waiting": 0}
        assert ask(client, "a").status_code == 503
        health = client.get("/health")
        assert health.status_code == 503 and "restart the server" in health.json()["status"]
        assert "restart it" in ask(client, "a").json()["detail"]


def test_openapi_describes_each_task_with_its_example(client):
    described = client.get("/openapi.json").json()
    operation = described["paths"]["/predict/ner"]["post"]
    schema = operation["requestBody"]["content"]["application/json"]["schema"]
    assert schema["examples"] == [Predictor.example]
    assert schema["properties"] == Predictor.schema and operation["summary"] == Predictor.summary
    assert {"200", "408", "413", "422", "500", "503"} <= set(operation["responses"])
    assert set(described["paths"]) == {"/", "/models", "/health", "/predict/ner"}


def test_the_page_may_load_nothing_from_elsewhere(client):
    page = client.get("/")
    policy = page.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; connect-src 'self'; img-src data:; script-src '")
    assert "http" not in policy and "unsafe" not in policy
    assert "://" not in page.text and " src=" not in page.text


@each_task
def test_the_answer_to_a_line_is_that_of_predict(task, task_of, archive_of, tmp_path):
    lines = [json.dumps(task_of(task).predictor.example)]
    lines += (FIXTURES / f"predict/{task}.jsonl").read_text(encoding="utf-8").splitlines()
    source, output = tmp_path / "lines.jsonl", tmp_path / "out.jsonl"
    source.write_text("\n".join(lines), encoding="utf-8")
    running.run("predict", archive_of(task), source, "--silent", "--output-file", output)
    # A document without a name has the number of its line.
    expected = re.sub('"id": "line_[0-9]+"', '"id": "line_1"', output.read_text(encoding="utf-8"))
    with TestClient(make_app({task: task_of(task)})) as client:
        answers = [client.post(f"/predict/{task}", content=line.encode()) for line in lines]
    assert {answer.status_code for answer in answers} == {200}
    assert "".join(answer.text for answer in answers) == expected


@each_task
@pytest.mark.parametrize(
    "request_",
    ["{}", '{"tokens": []}', '{"sentence": 1, "text": 1, "passage": 1, "premise": 1}', "null"],
)
def test_no_task_fails_on_another_form(task, request_, task_of):
    with pytest.raises((ValueError, ConfigurationError)):
        task_of(task).read(request_)


@pytest.mark.parametrize(
    "task, request_, found",
    [
        # A sentence counts once for each of its predicates.
        ("srl", {"tokens": ["a"] * 40, "predicates": "all"}, 1600),
        ("coref", {"sentences": [["a"] * 501] * 2}, 1002),
        ("coref", {"text": "a " * 1002}, 1002),
    ],
)
def test_all_words_that_a_model_reads_count(task, request_, found, task_of):
    with pytest.raises(ValueError, match=f"at most 1000 words for a model to read, found {found}"):
        task_of(task).read(json.dumps(request_))


def test_layers_are_rounded_as_by_the_cache_and_none_is_kept(archive_of, tmp_path, monkeypatch):
    monkeypatch.setenv("ELMO_CACHE", str(tmp_path / "cache"))
    cached = load_predictor(archive_of("sst"))
    line = cached.example
    expected = cached.dump_line(cached.predict_json(line))
    assert list((tmp_path / "cache").rglob("data.mdb"))
    monkeypatch.setenv("ELMO_CACHE", str(tmp_path / "other"))
    task = load_tasks([archive_of("sst")], load_predictor, Limits())["sst"]
    assert task.answer([line]) == [expected]
    assert not (tmp_path / "other").exists()


def test_archives_of_one_task_or_of_none_are_refused(archive_of, monkeypatch):
    ner = archive_of("ner")
    with pytest.raises(ConfigurationError, match="one archive of the task ner, found a second"):
        load_tasks([ner, ner], load_predictor, Limits())
    monkeypatch.delattr("elmo_plugin.tasks.ner.TagPredictor.example")
    with pytest.raises(ConfigurationError, match="one of the project's tasks, found NamedEntity"):
        load_tasks([ner], load_predictor, Limits())


@pytest.fixture
def words(bilm, tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("The play began .\nThey play chess .\n")
    build_index(bilm, [text], tmp_path / "index")
    index = ContextIndex(tmp_path / "index")
    return WordAnalyzer(bilm, make_softmax(bilm.options.lstm.output_dim), index, LIMITS)


def test_a_word_has_its_surprisal_and_nearest_contexts(words, bilm):
    request = json.dumps({"words": ["They", "play", "a", "game"], "position": 1})
    with TestClient(make_app({}, words)) as client:
        found = client.post("/word", content=request).json()
        unknown = client.post("/word", content=request.replace('"play"', '"plays"')).json()
    both = (found["surprisal"]["forward"] + found["surprisal"]["backward"]) / 2
    assert found["surprisal"]["both"] == pytest.approx(both) and found["known"] is True
    assert unknown["known"] is False
    assert len(found["surprisals"]) == 4 and found["surprisals"][1] == pytest.approx(both)
    assert list(found["neighbours"]) == ["1", "2"]
    best = found["neighbours"]["2"][0]
    assert best["words"][best["position"]] and -1 <= best["cosine"] <= 1.0001
    # Five of the nine contexts.
    assert [len(contexts) for contexts in found["neighbours"].values()] == [5, 5]


def test_without_softmax_and_index_a_word_has_neither(bilm):
    words = WordAnalyzer(bilm, None, None, LIMITS)
    (answer,) = words.answer([words.read('{"words": ["a"], "position": 0}')])
    nothing = dict.fromkeys(("surprisal", "surprisals", "known", "neighbours"))
    assert json.loads(answer) == nothing


def test_the_shipped_contexts_are_those_of_the_shipped_bilm(bilm):
    shipped = load_bilm("shipped-small")
    index = shipped_contexts(shipped)
    rows = range(0, len(index.layers[2]), 500)
    queries = [Query(words, position) for _, position, words in map(index.context, rows)]
    for row, query in zip(rows, queries):
        (layers,) = embed_sentences(shipped, [query.words])
        vectors = layers[:, query.position].float()
        for layer, indexed in index.layers.items():
            found = torch.from_numpy(indexed[row].astype("f4"))
            assert torch.cosine_similarity(vectors[layer], found, dim=0) > 0.999
    # The query's own sentence is left out.
    (found, *_) = find_neighbours(index, shipped, queries[:1])
    assert {each.words for each in found[2]} != {queries[0].words}
    assert all(each.words != queries[0].words for each in found[2]) and len(found[2]) == 5
    assert WordAnalyzer(shipped, None, index, LIMITS).source.endswith("CC BY-SA 3.0.")
    assert shipped_contexts(bilm) is None


@pytest.mark.parametrize("task", ["ner", "srl", "coref", "squad", "snli"])
def test_a_shipped_model_has_its_card_without_markdown(task, archive_of):
    card = read_card(shipped_archives()[task])
    rows = dict(card["rows"])
    assert {"score", "licence", "training data"} <= set(rows) and card["failures"]
    assert rows["licence"].startswith("CC BY-SA 4.0")
    assert not re.search(r"`|\]\(|---|\n", json.dumps([card["rows"], card["failures"]]))
    assert read_card(archive_of("ner")) is None


TEXT = 'Anna  doesn\'t like it.\n\nShe (really)\tleft, "well-known" as she is.'


@pytest.mark.parametrize(
    "task, line",
    [
        ("ner", {"sentence": TEXT}),
        ("srl", {"sentence": TEXT, "predicates": ["like", "left"]}),
        ("coref", {"text": TEXT}),
        ("squad", {"passage": TEXT, "question": "Who left?"}),
        ("snli", {"premise": TEXT, "hypothesis": "She  left."}),
        ("sst", {"sentence": f"  {TEXT}"}),
    ],
)
def test_what_is_drawn_has_the_spaces_of_the_text(task, line, task_of):
    served = task_of(task)
    (drawn,) = served.draw([served.read(json.dumps(line))])
    parts = [part for part in json.loads(drawn) if "words" in part]
    texts = ["".join(chain(*zip(part["spaces"], part["words"]))) for part in parts]
    if task == "srl":
        assert texts == [TEXT, TEXT]
    else:
        assert "".join(texts) == "\n".join(line.values()).removesuffix("\nWho left?")
    assert {"does", "n't"} <= {*parts[0]["words"]}


def test_words_that_are_not_in_the_text_are_drawn_with_spaces(task_of):
    served = task_of("ner")
    line = {"sentence": "Anna left.", "tokens": ["Tom", "stays"]}
    (part,) = json.loads(served.draw([line])[0])
    assert part["words"] == ["Tom", "stays"] and part["spaces"] == [" ", " "]


@pytest.mark.parametrize(
    "request_",
    [
        '{"words": ["a"], "position": 1}',
        '{"words": ["a"], "position": -1}',
        '{"words": ["a"], "position": true}',
        '{"words": ["a b"], "position": 0}',
        '{"words": "a", "position": 0}',
        '{"words": [], "position": 0}',
        '{"position": 0}',
        '{"words": ["a"]}',
    ],
)
def test_a_word_outside_of_its_sentence_is_refused(bilm, request_):
    with pytest.raises(ValueError, match='the request: expected "(words|position)"'):
        WordAnalyzer(bilm, None, None, LIMITS).read(request_)


def drive(app, messages, last):
    """
    Sends a request by hand, because the test client never goes away; `last` is awaited after its
    messages. Returns what is answered.
    """
    scope = {
        "type": "http", "method": "POST", "path": "/predict/ner", "raw_path": b"/predict/ner",
        "query_string": b"", "headers": [], "http_version": "1.1", "scheme": "http",
    }  # fmt: skip
    sent, remaining = [], [{"type": "http.request", **message} for message in messages]

    async def receive():
        return remaining.pop(0) if remaining else await last()

    async def send(message):
        sent.append(message)

    async def run():
        await app(scope, receive, send)
        return sent

    return run()


async def disconnect():
    return {"type": "http.disconnect"}


def test_a_client_that_went_away_is_not_answered(make_client, predictor):
    app = make_client().app
    body = {"body": b'{"tokens": ["gone"]}', "more_body": False}

    async def play():
        batches, went_away = app.state.batches, asyncio.Event()

        async def leave():
            await went_away.wait()
            return await disconnect()

        batches.start()
        first = asyncio.create_task(drive(app, [body], asyncio.Event().wait))
        while not predictor.batches:
            await asyncio.sleep(0.001)
        second = asyncio.create_task(drive(app, [body], leave))
        while not batches.num_waiting:
            await asyncio.sleep(0.001)
        went_away.set()
        await second
        predictor.may_answer.set()
        assert (await first)[0]["status"] == 200
        await batches.stop()

    predictor.may_answer.clear()
    asyncio.run(asyncio.wait_for(play(), 20))
    assert predictor.batches == [[["gone"]]]


def test_a_client_that_goes_away_while_it_sends_is_no_failure(make_client, caplog):
    messages = [{"body": b'{"tokens": [', "more_body": True}]
    sent = asyncio.run(drive(make_client().app, messages, disconnect))
    assert sent[0]["status"] == 499
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


def test_a_body_that_does_not_come_in_time_is_refused(make_client, monkeypatch):
    monkeypatch.setattr("elmo_plugin.serve.app._TIME_TO_SEND", 0.05)
    sent = asyncio.run(drive(make_client().app, [], asyncio.Event().wait))
    assert sent[0]["status"] == 408
