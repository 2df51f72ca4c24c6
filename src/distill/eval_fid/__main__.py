"""python -m distill.eval_fid: how close a network's output is to its target, on held-out photos.

Score a student against its teacher on held-out photos: FID, KID, PSNR, SSIM, LPIPS, ink.

  python -m distill.eval_fid                            the latest run
  python -m distill.eval_fid style=hayao decoder=nnconv features=mobilenet
  python -m distill.eval_fid a=DIR b=DIR                any two folders
  python -m distill.eval_fid -m run=A,B runs=runs/sweep-NAME

Held out is the test side of the run's set, or, where it has none, validation's, by which best
was chosen. The photos are split into halves A and B; T is the teacher, S the student:
  floor    FID(T(A), T(B))   as close as two sets of the teacher's own pictures come
  student  FID(T(A), S(B))
  ceiling  FID(T(A), photos B), or against another style
  paired   FID(T(B), S(B))   the same photos on both sides
Of lines, thin and dark: ink recall (share of the teacher's that the student drew within a
pixel), precision (share of the student's that the teacher drew), depth (darkness of its
lines as a share of the teacher's), mass (amount of black as a share of the teacher's), sharpness,
chamfer distance; displacement; flicker under noise, a step of 1 px and a slow pan; the metrics
of plug-ins. Of a set with whole pictures (data.sizes) also all of this by long side, beside
the photo and the teacher at 256, enlarged.
Writes RUN/eval/results.json, results.md and contact_sheet.png. Exit status 3: all but FID was
computed, of which weights or pictures are missing.

Everything, with its value: python -m distill.eval_fid --cfg job
"""

import sys

from distill.config.command import command
from distill.config.settings.commands import EvalFid


@command("eval_fid", EvalFid)
def main(settings: EvalFid) -> None:
    from distill.core.next_step import next_step
    from distill.eval_fid import paired_scores, run_scores

    run, scores = run_scores.carry_out(settings)
    if run and run.is_there:
        way = {} if settings.direction == "AtoB" else {"direction": settings.direction}
        print(next_step("stylize", "PHOTO.jpg", **run.words, **way))
    if scores["fid_missing"]:
        print(f"error: FID is missing: {scores['fid_missing']}", file=sys.stderr)
        sys.exit(paired_scores.FID_MISSING)


if __name__ == "__main__":
    main()
