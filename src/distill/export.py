"""python -m distill.export: a trained student to one ONNX file, checked against a budget."""

from __future__ import annotations

from distill.config import entry
from distill.settings import Export


@entry("export", Export)
def main(settings: Export) -> None:
    from pathlib import Path

    from distill import build, exporting
    from distill.nodes import build as build_node
    from distill.runs import find_run

    run = find_run(settings)
    checkpoint = run.checkpoint(settings.checkpoint)
    student, trained = build.load_student(checkpoint)
    exporter = build_node(settings.exporter)
    photos = exporting.parity_photos(trained, settings.photos, exporter.size)
    folder = Path(settings.output) if settings.output else run.folder / "export"

    print(f"exporting {checkpoint}")
    exporting.export(student, trained, exporter, settings, photos, folder)


if __name__ == "__main__":
    main()
