"""Training on a GPU: pictures a second, and the share of what the device can do.

step     the product's own step on one resident batch, targets at hand: loss, gradients, optimiser,
         in float32, TF32, bfloat16, compiled
label    the same with the teacher making the targets, as `data=photos` has it
command  `distill.train data=photos trainer=gpu` itself, everything on but validation: pictures a
         second between the step after the first ones and one before the end; and its loader alone

The share of the peak is 6 × the student's MACs (forward, and twice that backward) and 2 × the
teacher's where it labels, over what a large matrix product of the same arithmetic reaches in this
run; float16 is held to bfloat16's. The share of bandwidth is what all operators read and write,
each running alone, over a plain copy's bytes a second; compiling fuses operators, so it has no such
figure. Convolutions of few channels cannot reach the peak: the larger of the two shares says what
holds a form back.

A device of one's own is taken for granted. `--device cpu` rehearses all of it in a few minutes, on
sizes that say nothing.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from accelerator_command import commands
from accelerator_device import peaks
from accelerator_steps import LABELLED, STEPS, Form, race, settings_for
from common import Table, apart, machine, parser, spread, teacher_file, write

from distill.metrics.complexity import module_macs
from distill.models.teachers.animegan2 import AnimeGANv2
from distill.train import student_training

Macs = tuple[int, int]  # of student and teacher
Peaks = Mapping[str, float]  # see accelerator_device.peaks

FORMS = STEPS | {f"labelling, {name}": form for name, form in LABELLED.items()}
SIZES = {  # of a real run and of a rehearsal
    "cuda": {"size": 256, "batches": [16, 64, 256], "steps": 100, "pictures": 512, "side": 8192},
    "cpu": {"size": 64, "batches": [2], "steps": 3, "pictures": 48, "side": 256},
}


def steps(args: argparse.Namespace, file: Path) -> dict[int, dict[str, dict[str, Any]]]:
    """Every form at every batch size.

    A process of its own for each size, and one for what cuDNN tunes: it keeps an algorithm that it
    has once chosen for a shape, whoever asks next.
    """
    wanted = {n: f for n, f in FORMS.items() if ("label" if f.labels else "step") in args.parts}
    found: dict[int, dict[str, dict[str, Any]]] = {}
    for batch in args.batches if wanted else []:
        found[batch] = {}
        for tuned in (False, True):
            forms = {n: f for n, f in wanted.items() if f.tuned == tuned}
            given = (forms, batch, args.size, args.device, file, args.rounds, args.seconds)
            found[batch] |= apart(race, *given)[0]
    return found


def costs(size: int) -> Macs:
    """MACs a picture of student and teacher."""
    student = student_training.student_module(settings_for(4, size), None).student.eval()
    return module_macs(student, size) or 0, module_macs(AnimeGANv2(), size) or 0


def step_table(batch: int, found: Mapping[str, Any], macs: Macs, best: Peaks) -> Table:
    names = "form, pictures a second, ms a step, of the peak, of bandwidth, GB, first run"
    rows = [[name, *_cells(FORMS[name], batch, each, macs, best)] for name, each in found.items()]
    return Table(f"Batch {batch}", names.split(", "), rows)


def _cells(form: Form, batch: int, found: Mapping[str, Any], macs: Macs, best: Peaks) -> list[str]:
    if "failed" in found:
        return [found["failed"], *[""] * 5]
    seconds = found["seconds"]
    work = batch * (6 * macs[0] + form.labels * 2 * macs[1])
    moved = [found["bytes"] / s / best["copy"] for s in seconds]
    return [
        spread([batch / s for s in seconds], 0),
        spread([1000 * s for s in seconds], 2),
        _share([work / s / best[form.peak] for s in seconds]),
        _share(moved) if found["bytes"] else "",
        f"{found['memory'] / 1e9:.1f}",
        f"{found['first run']:.0f} s",
    ]


def _share(values: Sequence[float]) -> str:
    return f"{sorted(values)[len(values) // 2]:.1%}"


def command_table(found: Mapping[str, Sequence[float]], macs: Macs, best: Peaks) -> Table:
    work = (6 * macs[0] + 2 * macs[1]) / best["bf16"]
    rows = [
        [name, spread(each, 0), "" if "loader" in name else _share([v * work for v in each])]
        for name, each in found.items()
    ]
    return Table(
        "distill.train data=photos trainer=gpu", ["", "pictures a second", "of peak"], rows
    )


def device_facts(device: str, best: Peaks) -> dict[str, object]:
    facts = machine()
    if device == "cuda":
        card = torch.cuda.get_device_properties(0)
        facts |= {"GPU": f"{card.name}, {card.total_memory / 2**30:.0f} GiB"}
        facts |= {"CUDA": torch.version.cuda, "cuDNN": torch.backends.cudnn.version()}
    kinds = {f"{k} product, TFLOP/s": round(v / 1e12, 2) for k, v in best.items() if k != "copy"}
    return facts | kinds | {"copy, GB/s": round(best["copy"] / 1e9, 1)}


def options() -> argparse.Namespace:
    made = parser(__doc__)
    made.add_argument("--device", choices=SIZES, default="cuda", help="(%(default)s)")
    kinds = ["step", "label", "command"]
    made.add_argument("--parts", nargs="+", choices=kinds, default=kinds, help="(all)")
    made.add_argument("--batches", nargs="+", type=int, help="of step and label (16 64 256)")
    made.add_argument("--command-batches", nargs="+", type=int, help="of the command (16 64)")
    made.add_argument("--seconds", type=float, default=0.5, help="a form, a round (%(default)s)")
    made.add_argument("--steps", type=int, help="counted steps of a command (100)")
    made.add_argument("--warm", type=int, default=20, help="steps before them (%(default)s)")
    made.add_argument("--workers", type=int, help="of the command (those of trainer=gpu)")
    made.add_argument("--pictures", type=int, help="photos of the command (512)")
    made.add_argument("--size", type=int, help="a picture's side (256)")
    args = made.parse_args()
    for name, value in SIZES[args.device].items():
        if getattr(args, name, None) is None:
            setattr(args, name, value)
    args.command_batches = args.command_batches or args.batches[:2]
    return args


def main() -> None:
    args = options()
    if args.device == "cuda" and not torch.cuda.is_available():
        sys.exit(f"no GPU here (torch {torch.__version__}); --device cpu rehearses on the CPU")
    best, _ = apart(peaks, args.device, args.side, args.side**2 * 16)
    macs = costs(args.size)
    facts = device_facts(args.device, best)
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        file, facts["weights"] = teacher_file(work)
        found = steps(args, file)
        speed = commands(args, file, work) if "command" in args.parts else {}
    facts |= {"MMACs, student": round(macs[0] / 1e6, 1), "teacher": round(macs[1] / 1e6)}
    shown = [step_table(batch, each, macs, best) for batch, each in found.items()]
    if speed:
        shown.append(command_table(speed, macs, best))
    name = "accelerator" if args.device == "cuda" else "accelerator-rehearsal"
    write(name, args.out, facts, {"peaks": best, "forms": found, "commands": speed}, *shown)


if __name__ == "__main__":
    main()
