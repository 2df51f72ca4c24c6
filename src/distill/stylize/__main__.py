"""python -m distill.stylize: stylizes pictures with a trained student.

Stylize pictures with a trained student, offline.

  python -m distill.stylize photo.jpg                        stylized/photo-hayao.jpg
  python -m distill.stylize photo.jpg -o cartoon.png style=whitebox
  python -m distill.stylize holiday/ 'more/**/*.png' -o cartoons compare=true
  python -m distill.stylize photo.jpg model=runs/NAME/export/student.onnx
  python -m distill.stylize photo.jpg 'overlay=[hair,glasses]' stickers on faces
  python -m distill.stylize --list                           students, and who may use them
  python -m distill.stylize -m photo.jpg style=hayao,toon    several, one after the other

Pictures are files, folders (with all below them, whose structure is kept) and quoted patterns.
The output is as large as its picture and is called NAME-STYLE, of the same kind for jpg, png
and webp, else png; a grey one, as a matte, is png. Photos are turned as their EXIF says, colours
become sRGB, transparency is kept. No picture that is read is ever written over, but the output of
an earlier run is replaced.

The larger the size, the finer the strokes, so size=512 gives bolder ones. A larger picture is
scaled down first, the output back up. Memory, by the long side in pixels: about 1 GB at 1024, 2
at 2048, 5 and more at 4096; in tiles 1.1 GB and 20 bytes for every pixel of the picture.
Further crops of face=crop faces=all are called NAME-STYLE-2 and so on. Where no face is found,
a line says so and the whole picture is stylized. compare=true takes 10 seconds a picture and
more where the teacher is there. Of an animation the first picture is stylized.

A file that cannot be read is skipped with a line; then the exit status is 1.

Everything, with its value: python -m distill.stylize --cfg job
"""

from distill.config.command import command
from distill.config.settings.commands import Stylize


@command("stylize", Stylize, files=True)
def main(settings: Stylize) -> None:
    from distill.stylize import render, stylizing
    from distill.stylize.jobs import find, plan

    if settings.listed:
        print(stylizing.listing())
        return
    files, omissions = find(settings.inputs, settings.output)
    student, name = stylizing.choose(settings)
    render.check_size(settings.size, student, settings.upscale)
    ending = f"{name}-compare" if settings.compare else name
    jobs = plan(files, settings.inputs, settings.output, ending, student.channels, settings.swept)

    stylizing.stylise_all(jobs, student, settings, omissions)


if __name__ == "__main__":
    main()
