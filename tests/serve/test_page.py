"""The page in a real Chromium: every task typed, answered, and looked at."""

import shutil

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect, sync_playwright

from elmo_plugin.serve.requests import EXAMPLES

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium is installed")
WIDTHS = {"wide": 1400, "narrow": 360}

# What is typed into each task, by the label of the field.
TYPED = {
    "ner": {"Sentence": "Anna 😀 met Tom in Paris."},
    "srl": {"Sentence": "The old man sold his house and left.", "Verbs": "sold, left"},
    "coref": {"Text": "Anna lost her keys. She was late."},
    "squad": {
        "Passage": "Anna 😀 lives in Paris. She sells books there.",
        "Question": "Where does Anna live?",
    },
    "snli": {"Premise": "A man sleeps.", "Hypothesis": "A man is awake."},
    "sst": {"Sentence": "What a joy!"},
}


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(params=WIDTHS)
def page(request, browser, server):
    context = browser.new_context(viewport={"width": WIDTHS[request.param], "height": 900})
    page = context.new_page()
    page.wrong = []
    page.on("pageerror", lambda error: page.wrong.append(str(error)))
    page.on("console", lambda said: page.wrong.append(said.text) if said.type == "error" else None)
    page.on(
        "request",
        lambda asked: (
            None
            if asked.url.startswith((server["url"], "data:"))
            else page.wrong.append(f"loads {asked.url}")
        ),
    )
    page.goto(server["url"])
    yield page
    assert page.wrong == []
    context.close()


def answered(page, task):
    """Types into the fields of a task, and returns its section with the answer."""
    page.locator(f'nav a[href="#{task}"]').click()
    section = page.locator(f"#task-{task}")
    for label, text in TYPED[task].items():
        section.get_by_label(label).fill(text)
    section.get_by_role("button", name="Answer").click()
    section.locator(".answer").wait_for(state="visible")
    return section


def check_accessible(page):
    violations = Axe().run(page).response["violations"]
    assert [(each["id"], each["nodes"][0]["html"]) for each in violations] == []
    width = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.evaluate(width) <= 0


@pytest.mark.parametrize("task", EXAMPLES)
def test_a_task_is_typed_answered_and_drawn(page, task):
    section = answered(page, task)
    assert section.get_by_role("status").first.inner_text().endswith(".")
    words = section.locator(".answer .text").first.locator(".w").all_inner_texts()
    assert words[:1] == [list(TYPED[task].values())[0].split()[0]]
    # The answer has some height and width.
    box = section.locator(".answer").bounding_box()
    assert box["height"] > 60 and box["width"] > 250
    check_accessible(page)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_both_colour_schemes_have_contrast(page, scheme):
    page.emulate_media(color_scheme=scheme)
    for task in ("ner", "sst"):
        answered(page, task).locator(".w").first.click()
        page.locator(f"#task-{task} .word table").first.wait_for()
        check_accessible(page)


# Answers are given here, so that what is drawn does not depend on what a model has learnt.
def given(page, task, answer):
    page.route(f"**/predict/{task}", lambda route: route.fulfill(json=answer))
    return answered(page, task)


def test_entities_are_drawn_around_their_words(page):
    tokens = ["Anna", "Hill", "met", "Tom", "."]
    entities = [
        {"type": "PER", "start": 0, "end": 1, "text": "Anna Hill"},
        {"type": "ORG", "start": 3, "end": 3, "text": "Tom"},
    ]
    section = given(page, "ner", {"tokens": tokens, "tags": [], "entities": entities})
    assert section.locator(".span").all_inner_texts() == ["Anna HillPER", "TomORG"]
    expect(section.get_by_role("status").first).to_have_text("2 names: Anna Hill, PER; Tom, ORG.")


def test_roles_are_drawn_for_each_verb(page):
    tokens = ["The", "man", "sold", "it", "and", "left"]
    frames = [
        {"predicate": 2, "tags": ["B-ARG0", "I-ARG0", "B-V", "B-ARG1", "O", "O"]},
        {"predicate": 5, "tags": ["B-ARG0", "I-ARG0", "O", "O", "O", "B-V"]},
    ]
    frames = [{**frame, "lemma": "", "description": "…"} for frame in frames]
    section = given(page, "srl", {"tokens": tokens, "frames": frames})
    assert section.locator(".answer h3").all_inner_texts() == ["sold", "left"]
    texts = section.locator(".answer .text")
    drawn = [texts.nth(n).locator(".span").all_inner_texts() for n in range(2)]
    assert drawn == [["The manARG0", "soldV", "itARG1"], ["The manARG0", "leftV"]]


def test_a_verb_that_is_not_in_the_sentence_is_named(page):
    page.locator('nav a[href="#srl"]').click()
    section = page.locator("#task-srl")
    section.get_by_label("Verbs").fill("flew")
    section.get_by_role("button", name="Answer").click()
    expect(section.get_by_role("status").first).to_contain_text(
        "“flew” is not a word of the sentence"
    )
    section.get_by_label("Verbs").fill("")
    section.get_by_role("button", name="Answer").click()
    expect(section.get_by_role("status").first).to_have_text(
        "Name at least one verb of the sentence."
    )


def test_verbs_of_an_earlier_sentence_are_removed(page):
    page.locator('nav a[href="#srl"]').click()
    section = page.locator("#task-srl")
    section.get_by_label("Sentence").fill("She sold it and left.")
    expect(section.get_by_label("Verbs")).to_have_value("left")


def test_clusters_are_drawn_inside_each_other(page):
    def mention(start, end, text):
        return {"sentence": 0, "start": start, "end": end, "text": text}

    clusters = [
        [mention(0, 0, "Anna"), mention(2, 2, "her")],
        [mention(2, 3, "her keys"), mention(5, 5, "them")],
    ]
    sentences = [["Anna", "lost", "her", "keys", "and", "them"]]
    section = given(page, "coref", {"sentences": sentences, "clusters": clusters})
    assert section.locator(".span .span").all_inner_texts() == ["her1"]
    assert section.locator(".span").all_inner_texts() == ["Anna1", "her1 keys2", "her1", "them2"]


def test_the_answer_is_marked_in_its_passage_also_after_an_emoji(page):
    passage = TYPED["squad"]["Passage"]
    start = passage.index("Paris")
    best = {"answer": "Paris", "start": start, "end": start + 5, "probability": 0.75}
    section = given(page, "squad", {**best, "n_best": [best]})
    assert section.locator("mark").all_inner_texts() == ["Paris"]
    assert section.locator(".answer .text").inner_text() == passage
    expect(section.get_by_role("status").first).to_contain_text("The answer: Paris")


def test_probabilities_are_drawn_as_bars(page):
    probabilities = {"entailment": 0.5, "neutral": 0.3, "contradiction": 0.2}
    answer = {"label": "entailment", "probabilities": probabilities}
    section = given(page, "snli", {**answer, "premise_tokens": ["a"], "hypothesis_tokens": ["b"]})
    numbers = section.locator(".answer td.number").all_inner_texts()
    assert numbers == ["50.0 %", "30.0 %", "20.0 %"]
    widths = [fill.bounding_box()["width"] for fill in section.locator(".answer .fill").all()]
    tracks = [track.bounding_box()["width"] for track in section.locator(".answer .track").all()]
    shares = [width / track for width, track in zip(widths, tracks)]
    assert shares == pytest.approx([0.5, 0.3, 0.2], abs=0.03)


def test_a_word_is_explained_by_keyboard_alone(page):
    section = answered(page, "ner")
    section.get_by_role("button", name="Example").focus()
    page.keyboard.press("Tab")
    expect(section.locator(".w").first).to_be_focused()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    explained = section.get_by_role("region", name="Word")
    expect(explained.get_by_role("status")).to_contain_text("“met”: surprisal ")
    expect(explained.get_by_role("heading", name="Nearest contexts in layer 2")).to_be_visible()
    expect(explained.get_by_role("row", name="token layer")).to_be_visible()
    assert section.locator('.w[aria-pressed="true"]').all_inner_texts() == ["met"]
    # One stop of the tabulator for all words of the text.
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.classList.contains('w')") is False


def test_an_error_of_the_server_is_shown(page):
    page.locator('nav a[href="#sst"]').click()
    section = page.locator("#task-sst")
    section.get_by_label("Sentence").fill("word " * 1100)
    section.get_by_role("button", name="Answer").click()
    expect(section.get_by_role("status").first).to_contain_text("expected at most 1000 words")
    section.get_by_label("Sentence").fill("")
    section.get_by_role("button", name="Answer").click()
    expect(section.get_by_role("status").first).to_contain_text("expected at least one word")
    # The browser reports refused requests on its console.
    assert all("Failed to load resource" in each for each in page.wrong)
    page.wrong.clear()


def test_text_is_never_read_as_html(page):
    page.locator('nav a[href="#ner"]').click()
    section = page.locator("#task-ner")
    section.get_by_label("Sentence").fill("<img src=x onerror=alert(1)> is here")
    section.get_by_role("button", name="Answer").click()
    section.locator(".answer").wait_for(state="visible")
    assert section.locator("img").count() == 0
