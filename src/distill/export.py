"""python -m distill.export: a trained student to one ONNX file, checked, and to other formats."""

from __future__ import annotations

from distill.config import entry
from distill.settings import Export


@entry("export", Export)
def main(settings: Export) -> None:
    from pathlib import Path

    from distill import build, exporting
    from distill.formats import steps
    from distill.nodes import build as build_node
    from distill.runs import find_run

    steps.chosen(settings.formats)  # a typo ends here, before anything is read
    run = find_run(settings)
    checkpoint = run.checkpoint(settings.checkpoint)
    student, trained = build.load_student(checkpoint)
    exporter = build_node(settings.exporter)
    photos = exporting.parity_photos(trained, settings.photos, exporter.size)
    folder = Path(settings.output).expanduser() if settings.output else run.folder / "export"

    print(f"exporting {checkpoint}")
    steps.export(student, trained, exporter, settings, photos, folder)


if __name__ == "__main__":
    main()
