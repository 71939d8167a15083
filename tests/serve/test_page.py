"""The page in a real Chromium: every task typed, answered, and looked at."""

import io
import json
import shlex
import shutil
from contextlib import redirect_stdout

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect, sync_playwright

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium is installed")
SIZES = {"wide": (1400, 900), "narrow": (360, 740)}

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


@pytest.fixture(params=SIZES)
def page(request, browser, server):
    context = browser.new_context(viewport=dict(zip(("width", "height"), SIZES[request.param])))
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
        section = answered(page, task)
        section.locator("summary").click()
        section.locator(".w").first.click()
        section.locator(".word .contexts").first.wait_for()
        check_accessible(page)


# Parts are given here, so that what is drawn does not depend on what a model has learnt.
def given(page, task, *parts):
    page.route(f"**/draw/{task}", lambda route: route.fulfill(json=parts))
    return answered(page, task)


def words(text, *spans, title=""):
    words = text.split()
    spaces = ["", *[" "] * (len(words) - 1)]
    return {"words": words, "spans": spans, "title": title, "spaces": spaces}


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
    expect(section.get_by_role("status").first).to_contain_text("“flew” is not in the text.")


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
    section.get_by_role("button", name="Answer").focus()
    page.keyboard.press("Tab")
    expect(section.locator(".w").first).to_be_focused()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    explained = section.get_by_role("region", name="Word")
    expect(explained.get_by_role("status")).to_contain_text("“met”: surprisal ")
    expect(explained.get_by_role("heading", name="Nearest contexts in layer 2")).to_be_visible()
    assert section.locator('.w[aria-pressed="true"]').all_inner_texts() == ["met"]
    # One stop of the tabulator for all words of the text.
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.classList.contains('w')") is False
    explained.get_by_role("button", name="Close").focus()
    page.keyboard.press("Escape")
    expect(explained).to_be_hidden()
    expect(section.locator(".w").nth(2)).to_be_focused()


@pytest.mark.parametrize("task", ["coref", "squad"])
def test_a_word_stays_beside_its_sentence_which_is_shaded(page, task):
    section = answered(page, task)
    section.locator(".w").first.click()
    section.locator(".word .contexts").first.wait_for()
    panel, text = (section.locator(each).bounding_box() for each in (".word", ".text"))
    size = page.viewport_size
    for box in (panel, text):
        assert box["y"] >= 0 and box["x"] >= 0
        assert box["y"] + box["height"] <= size["height"]
    assert panel["x"] >= text["x"] + text["width"] or panel["y"] >= text["y"] + text["height"]
    # All words of the first sentence, and none of the second.
    shaded = [title is not None for title in titles(section)]
    first = shaded.index(False)
    assert 0 < first < len(shaded) and not any(shaded[first:])
    assert section.locator(".w").nth(first - 1).inner_text() == "."
    assert all(title.endswith(" bits") for title in titles(section)[:first])
    section.get_by_role("button", name="Close").click()
    assert not any(titles(section)) and section.locator(".shaded").count() == 0


def titles(section):
    return [word.get_attribute("title") for word in section.locator(".w").all()]


def test_the_answer_keeps_the_spacing_of_the_text(page):
    text = 'Anna  doesn\'t like it.\n\nShe (really) left, "well-known" as she is.'
    page.locator('nav a[href="#coref"]').click()
    section = page.locator("#task-coref")
    section.get_by_label("Text").fill(text)
    page.keyboard.press("Control+Enter")
    section.locator(".answer").wait_for(state="visible")
    # Without the labels, which a visitor does not select, either.
    drawn = """text => {
        for (const tag of text.querySelectorAll(".tag")) tag.remove();
        return text.innerText;
    }"""
    assert section.locator(".text").evaluate_all(f"texts => texts.map({drawn})") == [text]
    # The words are the model's.
    assert section.locator(".w").all_inner_texts()[1:3] == ["does", "n't"]


def test_an_entity_and_its_tag_are_on_one_line_at_every_length(page):
    spans = [[number, number, "PER"] for number in range(120)]
    long = [("a" * (3 + number % 13)) + "!?)-😀京"[number % 6] for number in range(120)]
    section = given(page, "ner", words(" ".join(long), *spans))
    lines = """tags => tags.map(tag => {
        const word = [...tag.previousSibling.getClientRects()].at(-1);
        const own = [...tag.getClientRects()];
        return own.length === 1 && own[0].top < word.bottom && word.top < own[0].bottom;
    })"""
    found = section.locator(".tag").evaluate_all(lines)
    assert len(found) == 120 and all(found)
    # There are several lines, and the boxes are as wide as their text.
    assert section.locator(".text").bounding_box()["height"] > 100
    check_accessible(page)


def test_a_label_has_its_colour_in_every_answer_and_a_legend(page):
    colour = "tags => tags.map(tag => [tag.textContent, getComputedStyle(tag).backgroundColor])"
    found = []
    for labels in (["PER", "ORG", "NEW"], ["NEW", "LOC", "ORG", "PER"]):
        spans = [[number, number, label] for number, label in enumerate(labels)]
        section = given(page, "ner", words("a b c d", *spans))
        expect(section.locator(".tag")).to_have_count(len(labels))
        found.append(dict(section.locator(".tag").evaluate_all(colour)))
        page.unroute("**/draw/ner")
    assert found[0].items() <= found[1].items()
    assert len({found[1][label] for label in ("PER", "ORG", "LOC")}) == 3
    legend = section.get_by_role("list", name="Labels")
    assert legend.locator("li").all_inner_texts() == ["PER person", "LOC place", "ORG organisation"]
    assert dict(legend.locator("b").evaluate_all(colour)).items() <= found[1].items()


def test_text_from_right_to_left_is_in_its_order(page):
    section = given(page, "ner", words("עדה גרה New York היום", [2, 3, "LOC"]))
    places = [word.bounding_box()["x"] for word in section.locator(".w").all()]
    first, second, new, york, last = places
    assert first > second > york > new > last
    section.locator(".w").first.focus()
    page.keyboard.press("ArrowLeft")
    expect(section.locator(".w").nth(1)).to_be_focused()


def test_a_link_carries_the_text_and_is_answered(page, server):
    answered(page, "squad")
    section = page.locator("#task-squad")
    before = section.locator(".text").inner_text()
    section.get_by_role("button", name="Link").click()
    link = section.locator("pre").inner_text()
    assert page.url == link and link.startswith(f"{server['url']}#squad?passage=")
    page.goto("about:blank")
    page.goto(link)
    section.locator(".answer").wait_for(state="visible")
    assert section.locator(".text").inner_text() == before
    for label, text in TYPED["squad"].items():
        expect(section.get_by_label(label)).to_have_value(text)


def test_an_answer_is_copied_for_programs(page, server):
    page.goto(f"{server['url']}#srl?sentence=She's+gone,+%22and%22+he+left.&predicates=left")
    section = page.locator("#task-srl")
    section.locator(".answer").wait_for(state="visible")

    def copied(kind):
        section.get_by_role("button", name=kind, exact=True).click()
        section.locator("pre").wait_for(state="visible")
        expect(section.locator(".answer [role=status]")).not_to_be_empty()
        return section.locator("pre").inner_text()

    answer = json.loads(copied("JSON"))
    assert [frame["predicate"] for frame in answer["frames"]] == [8]
    page.wait_for_timeout(100)
    program, url, option, body = shlex.split(copied("curl"))
    assert (program, url, option) == ("curl", f"{server['url']}predict/srl", "-d")
    assert json.loads(body) == {"sentence": 'She\'s gone, "and" he left.', "predicates": ["left"]}
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(copied("Python"), {})
    assert eval(printed.getvalue()) == answer


def test_examples_are_chosen_answered_and_labelled_if_they_are_hard(page):
    page.locator('nav a[href="#ner"]').click()
    section = page.locator("#task-ner")
    picker = section.get_by_label("Example")
    options = picker.locator("option").all_inner_texts()
    assert options[0] == "Your own text" and len(options) >= 6
    hard = picker.locator("optgroup option").first
    for number, is_hard in (("1", False), (hard.get_attribute("value"), True)):
        picker.select_option(number)
        shown = picker.locator(f'option[value="{number}"]').inner_text()
        expect(section.get_by_label("Sentence")).to_have_value(shown)
        section.locator(".answer").wait_for(state="visible")
        expect(section.locator(".answer .text")).to_contain_text(shown.split()[0])
        expect(section.get_by_text("Wrong:")).to_have_count(int(is_hard))
    section.get_by_label("Sentence").fill("Mine.")
    expect(picker).to_have_value("")


def test_a_text_box_grows_with_its_text(page):
    page.locator('nav a[href="#coref"]').click()
    box = page.locator("#task-coref").get_by_label("Text")
    before = box.bounding_box()["height"]
    box.fill("She left her keys. " * 20)
    assert box.bounding_box()["height"] > 1.5 * before
    assert box.evaluate("box => box.scrollHeight - box.clientHeight") <= 0


def test_the_card_of_a_model_is_one_click_away(page, server):
    described = page.request.get(f"{server['url']}models").json()
    failures = ["It calls the Amazon a place."]
    described["tasks"]["ner"]["card"] = {"rows": [["score", "77 F1"]], "failures": failures}
    page.route("**/models", lambda route: route.fulfill(json=described))
    page.reload()
    page.locator('nav a[href="#ner"]').click()
    section = page.locator("#task-ner")
    section.get_by_text("About this model").click()
    expect(section.get_by_role("row", name="score 77 F1")).to_be_visible()
    expect(section.get_by_text(failures[0])).to_be_visible()
    expect(section.get_by_role("row", name="token layer")).to_be_visible()
    check_accessible(page)


def test_an_error_of_the_server_is_shown(page):
    page.locator('nav a[href="#sst"]').click()
    section = page.locator("#task-sst")
    section.get_by_label("Sentence").fill("word " * 1100)
    section.get_by_role("button", name="Answer").click()
    expect(section.get_by_role("status").first).to_contain_text("at most 1,000 words")
    # The browser reports refused requests on its console.
    assert all("Failed to load resource" in each for each in page.wrong)
    page.wrong.clear()
    section.get_by_label("Sentence").fill(" ")
    section.get_by_role("button", name="Answer").click()
    expect(section.get_by_role("status").first).to_have_text(
        "The sentence is empty. Enter some text."
    )


@pytest.mark.parametrize(
    "status, said",
    [
        (422, "The model cannot read this: expected a word, found none."),
        (500, "The model failed on this text. The server's log says why."),
        (503, "The server is busy or stopping. Try again in a moment."),
    ],
)
def test_refusals_are_in_the_words_of_a_visitor(page, status, said):
    detail = {"detail": "the request: expected a word, found none."}
    page.route("**/draw/sst", lambda route: route.fulfill(status=status, json=detail))
    page.locator('nav a[href="#sst"]').click()
    section = page.locator("#task-sst")
    section.get_by_role("button", name="Answer").click()
    expect(section.get_by_role("status").first).to_have_text(said)
    page.wrong.clear()


def test_text_is_never_read_as_html(page):
    page.locator('nav a[href="#ner"]').click()
    section = page.locator("#task-ner")
    section.get_by_label("Sentence").fill("<img src=x onerror=alert(1)> is here")
    section.get_by_role("button", name="Answer").click()
    section.locator(".answer").wait_for(state="visible")
    assert section.locator("img").count() == 0
