"""python -m distill.lens: students live on the camera, on a web page."""

from __future__ import annotations

from distill.config.compose import entry
from distill.config.settings.commands import Lens
from distill.models.recipes import RECIPES


@entry("lens", Lens, recipes=RECIPES)
def main(settings: Lens) -> None:
    from distill.lens import embedded, lens_folder, page_students, server, webpage

    students = page_students.choose(settings)
    lens_folder.check_replaceable(settings)
    page = webpage.find()  # builds it, and so comes after all that can be refused
    folder = lens_folder.build(page, students, settings)
    print(lens_folder.summary(folder, students), flush=True)
    if settings.embed:
        print(embedded.summary(folder), flush=True)

    if settings.serve:
        server.serve(folder, settings)


if __name__ == "__main__":
    main()
