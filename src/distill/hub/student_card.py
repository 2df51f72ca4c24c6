"""The card of a student on the Hub: what it is, how it is used, whose terms it is under."""

from __future__ import annotations

from distill.data.cards.terms import INHERITED, front_matter, licence_entries, one_line
from distill.hub.published_student import PublishedStudent
from distill.metrics import complexity

SIDE = 256  # that MACs are counted at
TAGS = ["image-to-image", "knowledge-distillation", "stylization"]
LIBRARY, TASK = "distill", "image-to-image"

OF_PAIRS = (
    "Those of the pictures that it learnt from, for which whoever publishes it answers. They are "
    "not in it and not shipped."
)
USE = """\
```python
from distill.hub.hub_student import HubStudent  # pip install 'distill[hub]'

student = HubStudent.from_pretrained("{repo}")  # or the folder these files lie in
stylised = student(photo)  # (N, 3, H, W) RGB in [0, 1], any size
```

`model.safetensors` by itself: `distill stylize photo.jpg model=model.safetensors`, and
`distill train photos=DIR init=model.safetensors` goes on from it."""


def student_card(student: PublishedStudent, repo: str = "USER/NAME", sheet: str = "") -> str:
    """The card as Markdown; `sheet` is a picture beside it, "" where there is none."""
    said = student.description
    style = said["style"]
    name = one_line(style["name"])
    head = licence_entries(style["licence"], style["source"]) | {
        "library_name": LIBRARY,
        "pipeline_tag": TASK,
        "tags": TAGS,
    }
    model = f"its heavy teacher `{name}` does" if said["teacher"] else "pairs of pictures showed it"
    parts = [
        front_matter(head) + f"\n# {name}",
        *([f"![photo and stylised picture, side by side]({sheet})"] if sheet else []),
        f"A small network that stylises photos as {model}, made with distill "
        f"{one_line(said['version'])}.",
        USE.format(repo=repo),
        "## What it is",
        "\n".join(f"- {key}: {value}" for key, value in _facts(student).items()),
        "## Terms",
        INHERITED.format(one_line(style["licence"])) if said["teacher"] else OF_PAIRS,
    ]
    return "\n\n".join(parts) + "\n"


def _facts(student: PublishedStudent) -> dict[str, str]:
    said = student.description
    style, decoder = said["style"], one_line(said["decoder"]["name"])
    teacher = (said["teacher"] or {}).get("_target_", "")
    file = f"{one_line(style['file'])}, " if style["file"] else ""
    sha256 = f", sha256 {one_line(style['sha256'])}" if style["sha256"] else ""
    macs = complexity.module_macs(student.student, SIDE) or 0
    return {
        "student": f"MobileNetV2-{student.student.encoder.width}, decoder {decoder}",
        "parameters": f"{complexity.parameters(student.student):,}",
        f"MACs at {SIDE}²": f"{macs:,}",
        "input": f"RGB in [0, 1]; it learnt at {said['size']}×{said['size']}",
        "output": "RGB" if said["channels"] == 3 else "RGBA",
        "teacher": f"{teacher.rpartition('.')[2] or 'none'}: {file}"
        f"{one_line(style['source'])}{sha256}",
    }
