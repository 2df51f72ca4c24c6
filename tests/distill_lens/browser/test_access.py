"""For who sees little, uses no mouse, or holds a phone on its side: axe, contrast, keys, layout."""

import numpy as np
import pytest

from distill_lens import webpage
from support.chromium_page import download

AXE = webpage.SOURCES / "node_modules" / "axe-core" / "axe.min.js"
SCREENS = {
    "desktop": (1280, 800),
    "laptop": (1366, 700),
    "phone": (390, 844),
    "phone on its side": (844, 390),
}
# What axe cannot tell, worked out by hand (WCAG's formula): white on a ground of 68 % black over a
# white picture is 6.6:1 at least; the hint on the darker tile of its chequers 5.6:1.
OVER_PICTURES = (".tag-left", "#tag", "#meter", "#sketch-meter", "#hint")
JUDGED = {("color-contrast", target) for target in OVER_PICTURES}

# Relative luminance and contrast: WCAG 2.2. Of every control's edge, on what lies below it; what
# looks like a link is found by its words.
CONTRAST = """() => {
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => {
    const part = (v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  };
  const ratio = (one, two) => {
    const [high, low] = [light(one), light(two)].sort((a, b) => b - a);
    return (high + 0.05) / (low + 0.05);
  };
  const below = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour.length < 4 || colour[3] === 1) return colour;
    }
  };
  const controls = "button:not(.plain), select, .thumbnail, .paper";
  return [...document.querySelectorAll(controls)].filter((each) => each.checkVisibility()).map(
    (each) => {
      const ground = below(each.parentElement);
      const style = getComputedStyle(each);
      const edge = style.borderStyle === "none" || parseFloat(style.borderWidth) === 0
        ? below(each) : parse(style.borderColor);
      const alone = each.closest(".switch"); // the switch's own edge encloses its buttons
      const seen = alone ? parse(getComputedStyle(alone).borderColor) : edge;
      return [each.id || each.className, ratio(seen, alone ? below(alone.parentElement) : ground)];
    });
}"""


def axe(at) -> dict:
    if not AXE.is_file():
        pytest.skip("no axe-core: npm ci in web/")
    if not at.page.evaluate("'axe' in window"):
        at.page.evaluate(AXE.read_text())
    return at.page.evaluate("axe.run({ resultTypes: ['violations', 'incomplete'] })")


def _named(found: list) -> list[tuple[str, str]]:
    return [(each["id"], node["target"][0]) for each in found for node in each["nodes"]]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("screen", SCREENS)
@pytest.mark.campaign
def test_axe_finds_nothing(visit, screen, scheme):
    width, height = SCREENS[screen]
    size = {"width": width, "height": height}
    # Colours that are on their way to others are no one's choice.
    at = visit(viewport=size, color_scheme=scheme, reduced_motion="reduce")
    for view in ("photo", "sketch", "sheet"):
        if view != "sheet":
            at.page.click(f"#view-{view}")
        elif screen.startswith("phone"):
            at.page.click("#view-photo")
            at.page.click("#more")
        scrolled = "document.querySelector(sheet.open ? '#sheet' : 'aside')"
        at.page.evaluate(f"{scrolled}.scrollTo(0, 0)")
        found = axe(at)
        assert _named(found["violations"]) == []
        # What a phone has scrolled away is judged when it is in sight.
        unsure = {*_named(found["incomplete"])} - JUDGED
        for down in range(200, 1600, 200):
            if unsure:
                at.page.evaluate(f"{scrolled}.scrollTo(0, {down}); scrollTo(0, {down})")
                unsure &= {*_named(axe(at)["incomplete"])}
        assert unsure == set(), view


PHONES = [(390, 844), pytest.param(844, 390, marks=pytest.mark.campaign)]


@pytest.mark.parametrize(("width", "height"), PHONES)
def test_a_phones_tasks_by_keyboard_alone(visit, width, height):
    """A style, saving, the camera; the sheet takes the focus and gives it back."""
    size = {"width": width, "height": height}
    at = visit("?compare=0", viewport=size, camera=True, reduced_motion="reduce")
    at.wait("document.getElementById('loop').hidden === false")
    key = at.page.keyboard.press
    at.page.focus("#about summary")
    key("Tab")
    assert focused(at) == "viewer"
    key("Tab")
    assert focused(at) == "style"
    key("ArrowRight")
    at.wait("document.getElementById('tag').textContent.toLowerCase() === 'hayao'")
    key("Tab")
    key("Home")
    assert focused(at) == "more"
    for closing in ("Escape", "Enter", "Space"):
        key("Enter")
        assert focused(at) == "close"
        assert at.page.locator("#styles").bounding_box()["y"] < height
        key(closing)
        at.wait("!document.getElementById('sheet').open")
        assert focused(at) == "more"
    key("Enter")
    key("Tab")
    key("Home")
    assert focused(at) == "open"
    key("ArrowRight")
    key("ArrowRight")
    assert focused(at) == "mirror"
    key("Enter")  # closes the sheet, to show what it did
    assert not at.page.evaluate("document.getElementById('sheet').open")
    assert focused(at) == "more"
    for name in ("record", "save", "freeze"):
        key("ArrowRight")
        assert focused(at) == name
    key("Enter")
    at.wait("document.getElementById('freeze').hidden")
    at.settle()
    assert focused(at) == "more"
    key("ArrowRight")
    key("ArrowRight")
    assert focused(at) == "save"
    with at.page.expect_download():
        key("Enter")
    key("End")
    assert focused(at) == "camera"
    key("Enter")
    at.wait("!document.getElementById('freeze').hidden")
    assert focused(at) == "camera"


@pytest.mark.parametrize(("width", "height"), PHONES)
def test_the_sheet_goes_with_the_finger_that_pulls_it(visit, width, height):
    at = visit(viewport={"width": width, "height": height}, reduced_motion="reduce")
    opened = "document.getElementById('sheet').open"
    for pulled, stays in {30: True, 120: False}.items():
        if not at.page.evaluate(opened):
            at.page.click("#more")
        box = at.page.locator("#close").bounding_box()
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        at.page.mouse.move(x, y)
        at.page.mouse.down()
        at.page.mouse.move(x, y + pulled, steps=4)
        assert abs(at.page.locator("#sheet").bounding_box()["y"] + 8 - box["y"] - pulled) < 16
        at.page.mouse.up()
        at.wait(f"{opened} === {str(stays).lower()}")
    at.page.click("#more")
    at.page.mouse.click(20, 120)  # on the picture
    at.wait(f"!{opened}")
    at.page.click("#more")
    at.page.click("#link")  # what is said while the sheet is open is said in it
    at.wait("sheet.contains(message) && message.checkVisibility() && message.textContent !== ''")
    edge = "document.getElementById('{}').getBoundingClientRect()"
    assert at.page.evaluate(f"{edge.format('message')}.top >= {edge.format('close')}.bottom")
    at.page.click("#close")
    at.wait("!sheet.contains(message) && message.checkVisibility()")


@pytest.mark.parametrize(("width", "height"), PHONES)
def test_the_camera_fills_a_phones_screen_and_is_saved_so(visit, width, height):
    """What a phone shows of the camera is what it saves and freezes; a desktop shows all of it."""
    at = visit(viewport={"width": width, "height": height}, camera=True)
    at.wait("document.getElementById('loop').hidden === false")
    at.frames(2)
    box = at.page.locator("#viewer").bounding_box()
    assert abs(box["width"] - width) < 2
    assert abs(box["height"] - height) < 2
    assert at.page.is_hidden("#divider")  # until it is asked for
    assert abs(np.log(np.divide(*download(at.page, "#save").size) * height / width)) < 0.02
    at.page.click("#freeze")
    at.wait("document.getElementById('freeze').hidden")
    at.settle()
    assert abs(np.log(np.divide(*download(at.page, "#save").size) * height / width)) < 0.02
    at.page.set_viewport_size({"width": 1280, "height": 800})
    at.wait("document.querySelector('main > aside') !== null && !divider.hidden")
    assert at.page.is_hidden("#more")
    names = "[...document.querySelectorAll('#photo-view .dock button')].map(({ id }) => id)"
    assert at.page.evaluate(names)[:4] == ["camera", "flip", "freeze", "open"]
    at.page.click("#camera")
    at.wait("document.getElementById('loop').hidden === false")
    at.frames(3)
    assert at.page.evaluate("photo.width / photo.height") == pytest.approx(4 / 3, abs=0.01)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.campaign
def test_the_edges_of_controls_are_seen(visit, scheme):
    at = visit(color_scheme=scheme, reduced_motion="reduce")
    for view in ("photo", "sketch"):
        at.page.click(f"#view-{view}")
        found = dict(at.page.evaluate(CONTRAST))
        assert len(found) > 5
        assert {name: ratio for name, ratio in found.items() if ratio < 3} == {}


def test_with_forced_colours_what_is_chosen_is_told(visit):
    at = visit(forced_colors="active")
    ground = "((id) => getComputedStyle(document.getElementById(id)).backgroundColor)"
    assert at.page.evaluate(f"{ground}('view-photo') !== {ground}('view-sketch')")
    line = "getComputedStyle(document.getElementById('divider'), '::before').backgroundColor"
    canvas = "getComputedStyle(document.body).backgroundColor"
    assert at.page.evaluate(f"{line} !== {canvas}")
    assert at.page.evaluate(
        "getComputedStyle(document.querySelector('.knob')).backgroundColor !== " + canvas
    )
    at.page.click("#view-sketch")
    assert at.page.evaluate(f"{ground}('trace') !== {ground}('eraser')")


def focused(at) -> str:
    return at.page.evaluate("document.activeElement.id || document.activeElement.name || ''")


def test_toolbars_go_by_arrow_keys(visit):
    at = visit()
    at.page.focus("#camera")
    for key, name in {
        "ArrowRight": "open",
        "End": "save",
        "Home": "camera",
        "ArrowLeft": "save",
    }.items():
        at.page.keyboard.press(key)
        assert focused(at) == name
    at.page.keyboard.press("Shift+Tab")
    assert focused(at) == "divider"
    at.page.keyboard.press("Tab")
    assert focused(at) == "save"  # where one was before


def test_the_focus_stays_in_a_toolbar_whose_button_goes(visit):
    at = visit()
    at.page.click("#view-sketch")
    at.page.click("#clear")
    at.page.click("#undo")
    at.page.focus("#redo")
    at.page.keyboard.press("Enter")  # there is nothing more to redo
    at.wait("document.activeElement.closest('[role=toolbar]') !== null")
    at.page.keyboard.press("End")
    assert focused(at) == "trace"  # nothing is drawn: nothing to save


def test_what_is_no_control_has_no_tab_stop(still):
    stops = still.page.evaluate(
        "[...document.querySelectorAll('[tabindex=\"0\"]')].map((each) => each.id)"
    )
    assert set(stops) <= {"viewer", "divider", "paper", "camera", "eraser"}


def test_on_a_phones_side_the_sheet_stands_beside_the_picture(visit):
    at = visit(viewport={"width": 844, "height": 390}, reduced_motion="reduce")
    at.page.click("#more")
    sheet = at.page.locator("#sheet").bounding_box()
    left = at.page.locator("#viewer").bounding_box()
    assert left["x"] + left["width"] <= sheet["x"]  # it stays in view while it is adjusted
    assert sheet["height"] == 390
    at.page.click("#close")
    at.page.click("#view-sketch")
    left = at.page.locator("#sketch-view").bounding_box()
    style = at.page.locator(".style").first.bounding_box()
    assert style["x"] >= left["x"] + left["width"]
    assert style["y"] + style["height"] <= 390
    dock = at.page.locator("#sketch-view .dock").bounding_box()
    assert dock["y"] + dock["height"] <= 390
    assert left["height"] >= 200
    assert at.page.evaluate(
        "(aside => aside.scrollWidth <= aside.clientWidth)(document.querySelector('aside'))"
    )


def test_on_a_phone_sketch_tools_fill_their_rows(visit):
    at = visit(viewport={"width": 390, "height": 844})
    at.page.click("#view-sketch")
    tops = at.page.evaluate(
        "[...document.querySelectorAll('#sketch-view .dock button')].filter((b) => b.offsetParent)"
        ".map((b) => b.offsetTop)"
    )
    rows = [tops.count(top) for top in sorted(set(tops))]
    assert len(tops) >= 6
    assert rows == [3, 3] if len(tops) == 6 else [4, 3]
