"""The page in the languages that it knows: all of it, and it fits."""

import re

import pytest

LANGUAGES = {
    "de": "Einstellungen", "es": "Ajustes", "fr": "Réglages", "ja": "設定",
    "pt": "Configurações", "zh": "设置",
}  # fmt: skip
# Every word on the page, seen or only read aloud, where it stands.
WORDS = """() => {
  const found = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode())
    if (!node.parentElement.closest("noscript, option, #meter, #why, #licence"))
      found.push(node.textContent.trim().replace(/\\s+/g, " "));
  for (const name of ["aria-label", "title"])
    for (const element of document.body.querySelectorAll(`[${name}]`))
      found.push(element.getAttribute(name));
  return found.filter((text) => text);
}"""
SAME = r"(?i)distill|lens|negative|hayao|stiff|pencil|paint|chalk|WASM.*|"
SAME += r"[\d,.: %px]+|Stopp?|.* px\)?|photo|style"  # the last two in French
CLIPPED = """[...document.querySelectorAll('.dock button')].filter(
  (b) => b.offsetParent && b.scrollWidth > b.clientWidth).map((b) => b.id)"""


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.campaign
def test_nothing_is_left_in_english(visit, language):
    english = visit(locale="en-GB").page.evaluate(WORDS)
    at = visit(locale=f"{language}-XX")
    assert at.page.evaluate("document.documentElement.lang") == language
    other = at.page.evaluate(WORDS)
    assert len(other) == len(english) > 60
    left = {a for a, b in zip(english, other, strict=True) if a == b}
    assert {text for text in left if not re.fullmatch(SAME, text)} == set()
    assert at.page.get_attribute("aside", "aria-label") == LANGUAGES[language]


def test_terms_are_in_the_language_too(visit):
    wanted = "Bedingungen von Hayao: kommerzielle Nutzung nicht erlaubt (AnimeGANv2: nur für "
    wanted += "Forschung und nicht kommerzielle Nutzung frei; öffentliche Sammlungen, einige davon "
    wanted += "nur für die Forschung; keine davon ist enthalten oder wird mitgeliefert)."
    assert visit("?lang=de&style=hayao").text("licence") == wanted


@pytest.mark.campaign
def test_the_first_known_language_counts_and_the_address_before_all(visit):
    def lang(query, locale):
        return visit(query, locale=locale).page.evaluate("document.documentElement.lang")

    assert lang("", "sv-SE") == "en"
    assert lang("", "zh-TW") == "zh"
    assert lang("", "es-419") == "es"
    assert lang("?lang=ja", "de-DE") == "ja"
    assert lang("?lang=tlh", "de-DE") == "de"


@pytest.mark.parametrize("language", ["en", *LANGUAGES])
@pytest.mark.parametrize(("width", "height"), [(1280, 720), (844, 390), (390, 844), (360, 640)])
@pytest.mark.campaign
def test_it_fits_the_screen(visit, language, width, height):
    at = visit(f"?lang={language}", viewport={"width": width, "height": height})
    for view in ("photo", "sketch"):
        at.page.click(f"#view-{view}")
        assert at.page.evaluate("document.documentElement.scrollWidth") <= width
        assert at.page.evaluate(CLIPPED) == []


def test_right_to_left_does_not_break_it(visit):
    at = visit("?compare=1")
    at.page.evaluate("document.documentElement.dir = 'rtl'")
    for width in (1280, 390):
        at.page.set_viewport_size({"width": width, "height": 800})
        for view in ("photo", "sketch"):
            at.page.click(f"#view-{view}")
            assert at.page.evaluate("document.documentElement.scrollWidth") <= width
            assert at.page.evaluate(CLIPPED) == []
        at.page.click("#view-photo")
        # The picture is no text: its photo stays on the left.
        split = "document.getElementById('divider').getBoundingClientRect()"
        middle = "(({ left, width }) => left + width / 2)"
        frame = "document.getElementById('viewer').getBoundingClientRect()"
        assert at.page.evaluate(f"Math.abs({middle}({split}) - {middle}({frame}))") < 2


def test_a_films_time_fits_a_phones_bar(visit):
    at = visit("?lang=fr&sound=0", camera=True, viewport={"width": 360, "height": 640})
    at.wait("!document.getElementById('freeze').hidden")
    at.frames(2)
    at.page.click("#record")
    at.wait("document.getElementById('record').ariaPressed === 'true'")
    assert at.text("record").split() == ["Arrêter", "0:00"]
    assert at.page.evaluate(CLIPPED) == []
    with at.page.expect_download():
        at.page.click("#record")
