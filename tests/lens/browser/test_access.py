"""For who sees little, uses no mouse, or holds a phone on its side: axe, contrast, keys, layout."""

from __future__ import annotations

import pytest

from distill.lens import webpage

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
    for view in ("photo", "sketch"):
        at.page.click(f"#view-{view}")
        at.page.evaluate("document.querySelector('aside').scrollTo(0, 0)")
        found = axe(at)
        assert _named(found["violations"]) == []
        # What a phone's side has scrolled away is judged when it is in sight.
        unsure = {*_named(found["incomplete"])} - JUDGED
        for down in range(200, 1600, 200):
            if unsure:
                at.page.evaluate(f"document.querySelector('aside').scrollTo(0, {down})")
                unsure &= {*_named(axe(at)["incomplete"])}
        assert unsure == set()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.campaign
def test_the_edges_of_controls_are_seen(visit, scheme):
    at = visit(color_scheme=scheme, reduced_motion="reduce")
    for view in ("photo", "sketch"):
        at.page.click(f"#view-{view}")
        found = dict(at.page.evaluate(CONTRAST))
        assert len(found) > 5
        assert {name: ratio for name, ratio in found.items() if ratio < 3} == {}


@pytest.mark.slow
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
    assert at.page.evaluate(f"{ground}('pen') !== {ground}('eraser')")


def focused(at) -> str:
    return at.page.evaluate("document.activeElement.id || document.activeElement.name || ''")


@pytest.mark.slow
def test_toolbars_go_by_arrow_keys(visit):
    at = visit()
    at.page.focus("#camera")
    for key, name in {
        "ArrowRight": "mirror",
        "End": "copy",
        "Home": "camera",
        "ArrowLeft": "copy",
    }.items():
        at.page.keyboard.press(key)
        assert focused(at) == name
    at.page.keyboard.press("Shift+Tab")
    assert focused(at) == "divider"
    at.page.keyboard.press("Tab")
    assert focused(at) == "copy"  # where one was before


def test_the_focus_stays_in_a_toolbar_whose_button_goes(visit):
    at = visit()
    at.page.click("#view-sketch")
    at.page.focus("#paper")
    at.page.keyboard.press("Space")
    at.page.keyboard.press("Space")
    at.page.focus("#undo")
    at.page.keyboard.press("Enter")  # there is nothing more to undo
    at.wait("document.activeElement.closest('[role=toolbar]') !== null")
    at.page.keyboard.press("End")
    assert focused(at) == "trace"  # nothing is drawn: nothing to save


def test_what_is_no_control_has_no_tab_stop(visit):
    at = visit()
    stops = at.page.evaluate(
        "[...document.querySelectorAll('[tabindex=\"0\"]')].map((each) => each.id)"
    )
    assert set(stops) <= {"divider", "paper", "camera", "pen"}


def test_on_a_phones_side_the_styles_stand_beside_the_stage(visit):
    at = visit(viewport={"width": 844, "height": 390})
    for view, stage in {"photo": "#viewer", "sketch": "#sketch-view"}.items():
        at.page.click(f"#view-{view}")
        left = at.page.locator(stage).bounding_box()
        style = at.page.locator(".style").first.bounding_box()
        assert style["x"] >= left["x"] + left["width"]
        assert style["y"] + style["height"] <= 390
        dock = at.page.locator(f"#{view}-view .dock").bounding_box()
        assert dock["y"] + dock["height"] <= 390
        assert left["height"] >= 200
        assert at.page.evaluate(
            "(aside => aside.scrollWidth <= aside.clientWidth)(document.querySelector('aside'))"
        )
