"""python -m distill.lens: runs students on the live camera, on a web page.

Serve a page that stylizes what the camera sees, in the browser itself.

  python -m distill.lens                               the students of the package
  python -m distill.lens 'students=[hayao,my.onnx]'    these two
  python -m distill.lens run=NAME                      a trained run
  python -m distill.lens https=true host=0.0.0.0       for a phone: prints a QR code
  python -m distill.lens static=DIR                    only the folder, for any https host

The folder holds the page, ONNX Runtime for browsers and the students, and nothing on it loads
from elsewhere. The page uses WebGPU where the browser has it, else WASM with as many threads
as cores and the host's headers allow, and says which. Ctrl-C ends the server.

A checkout builds the page with npm (Node.js 20 or later) when its sources have changed; the
wheel carries it built.

Everything, with its value: python -m distill.lens --cfg job
"""

from dataclasses import replace

from distill.config.command import command
from distill_lens.settings import Lens


@command("lens", Lens)
def main(settings: Lens) -> None:
    from distill_lens import lens_folder, server, webpage

    if settings.static is not None:
        settings = replace(settings, output=settings.static, serve=False)
    students = lens_folder.choose_students(settings)
    lens_folder.check_replaceable(settings.output)
    page = webpage.find()  # builds it, and so comes after all that can be refused
    folder = lens_folder.build(page, students, settings)
    print(lens_folder.summary(folder, students, settings.embed), flush=True)

    if settings.serve:
        server.serve(folder, settings)


if __name__ == "__main__":
    main()
