"""python -m distill.stylize: stylizes pictures and videos with a trained student.

Stylize pictures and videos with a trained student, offline.

  python -m distill.stylize photo.jpg                        stylized/photo-hayao.jpg
  python -m distill.stylize photo.jpg -o cartoon.png style=whitebox
  python -m distill.stylize holiday/ 'more/**/*.png' -o cartoons compare=true
  python -m distill.stylize photo.jpg model=runs/NAME/export/student.onnx
  python -m distill.stylize clip.mp4 smooth=0.8              stylized/clip-hayao.mp4
  python -m distill.stylize clip.mp4 'overlay=[hair,glasses]' stickers on faces
  python -m distill.stylize --list                           students, and who may use them
  python -m distill.stylize -m photo.jpg style=hayao,toon    several, one after the other

Pictures are files, folders (with all below them, whose structure is kept) and quoted patterns.
The output is as large as its picture and is called NAME-STYLE, of the same kind for jpg, png
and webp, else png. Photos are turned as their EXIF says, colours become sRGB, transparency is
kept. No picture that is read is ever written over, but the output of an earlier run is replaced.

Videos are accepted wherever pictures are: mp4, m4v, mov, mkv and webm keep their format, avi,
mpg, ts and others become mp4. Sound is copied, every frame keeps its time, rotated videos are
turned upright. H.264 (webm: VP9). They need PyAV: pip install 'distill[video]'.

The larger the size, the finer the strokes, so size=512 gives bolder ones. A larger picture is
scaled down first, the output back up. Memory, by the long side in pixels: about 1 GB at 1024, 2
at 2048, 5 and more at 4096; in tiles 1.1 GB and 20 bytes for every pixel of the picture.
Further crops of face=crop faces=all are called NAME-STYLE-2 and so on. Where no face is found,
a line says so and the whole picture is stylized. compare=true takes 10 seconds a picture and
more where the teacher is there. Of an animation the first picture is stylized.

A picture or video that cannot be read is skipped with a line, a damaged frame left out and
counted; then the exit status is 1. compare=true shows video | output; face=crop and
paste are for pictures.

Everything, with its value: python -m distill.stylize --cfg job
"""

from __future__ import annotations

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
    alpha = student.channels == 4
    jobs = plan(files, settings.inputs, settings.output, ending, alpha)

    stylizing.stylise_all(jobs, student, settings, omissions)


if __name__ == "__main__":
    main()
