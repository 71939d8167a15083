"""The page in a real Chromium: every task typed, answered, and looked at."""

import shutil

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect, sync_playwright

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium is installed")
WIDTHS = {"wide": 1400, "narrow": 360}

# What is typed into each task, by the label of the field.
TYPED = {
    "ner": {"Sentence": "Anna 😀 met Tom in Paris."},
    "srl": {"Sentence": "The old man sold his house and left.", "Predicates": "sold, left"},
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


@pytest.mark.parametrize("task", TYPED)
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


# Parts are given here, so that what is drawn does not depend on what a model has learnt.
def given(page, task, *parts):
    page.route(f"**/draw/{task}", lambda route: route.fulfill(json=parts))
    return answered(page, task)


def words(text, *spans, title=""):
    return {"words": text.split(), "spans": spans, "title": title}


@pytest.mark.parametrize(
    "parts, texts, status",
    [
        (
            [words("Anna Hill met Tom .", [0, 1, "PER"], [3, 3, "ORG"])],
            [["Anna HillPER", "TomORG"]],
            "PER: Anna Hill. ORG: Tom.",
        ),
        (
            [
                words("The man sold it", [0, 1, "ARG0"], [2, 2, "V"], title="sold"),
                words("The man left", [2, 2, "V"], title="left"),
            ],
            [["The manARG0", "soldV"], ["leftV"]],
            "sold, ARG0: The man. sold, V: sold. left, V: left.",
        ),
        # Inside each other; one that ends outside of the one around it cannot be drawn.
        (
            [words("Anna lost her keys", [0, 0, "0"], [2, 2, "0"], [2, 3, "1"], [1, 2, "2"])],
            [["Anna0", "lost her02", "her0"]],
            "0: Anna, her. 1: her keys. 2: lost her.",
        ),
        ([words("A dog")], [[]], "Nothing was found."),
    ],
)
def test_spans_are_drawn_around_their_words(page, parts, texts, status):
    section = given(page, "ner", *parts)
    drawn = [text.locator(".span").all_inner_texts() for text in section.locator(".text").all()]
    assert drawn == texts
    titles = [part["title"] for part in parts if part["title"]]
    assert section.locator(".answer h3").all_inner_texts() == titles
    expect(section.get_by_role("status").first).to_have_text(status)


def test_without_predicates_the_server_finds_them(page):
    page.locator('nav a[href="#srl"]').click()
    section = page.locator("#task-srl")
    section.get_by_label("Predicates").fill("")
    section.get_by_role("button", name="Answer").click()
    section.locator(".answer").wait_for(state="visible")
    assert section.locator(".answer h3").all_inner_texts() == ["gave", "left"]


def test_a_predicate_that_is_not_in_the_sentence_is_named(page):
    page.locator('nav a[href="#srl"]').click()
    section = page.locator("#task-srl")
    section.get_by_label("Predicates").fill("flew")
    section.get_by_role("button", name="Answer").click()
    expect(section.get_by_role("status").first).to_contain_text(
        '"predicates" to be words or positions from 0 in \'The girl'
    )
    page.wrong.clear()


def test_probabilities_are_drawn_as_bars(page):
    bars = [["entailment", 0.5], ["neutral", 0.3], ["contradiction", 0.2]]
    part = {"bars": bars, "title": "Probabilities"}
    section = given(page, "snli", words("a", [0, 0, ""]), part)
    assert section.locator("mark").all_inner_texts() == ["a"]
    status = "a; entailment, with a probability of 50.0 %."
    expect(section.get_by_role("status").first).to_have_text(status)
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
