"""python -m distill.lens: a student live on the camera, on a page of its own."""

from __future__ import annotations

from distill.config import entry
from distill.settings import Lens


@entry("lens", Lens)
def main(settings: Lens) -> None:
    from distill import lensing
    from distill.live import exhibits, serving, webpage

    page = webpage.find()
    students = exhibits.choose(settings)
    folder = lensing.build(page, students, settings)
    print(lensing.told(folder, students), flush=True)

    if settings.serve:
        serving.serve(folder, settings)


if __name__ == "__main__":
    main()
