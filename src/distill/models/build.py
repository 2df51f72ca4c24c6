"""Networks from their nodes: students, and teachers with their weights."""

from math import lcm
from typing import Literal

import torch
from torch import nn

from distill.config.settings.networks import (
    GeneratorSettings,
    NetworkSettings,
    StudentSettings,
    StyleSettings,
)
from distill.core import nodes, weights
from distill.core.errors import DistillError, of_the_user
from distill.core.images import channels_in, form, wrong_pictures
from distill.core.nodes import Node
from distill.core.weights import WeightsFile
from distill.models.students.heads import Head
from distill.models.students.student import Student, global_statistics
from distill.models.teachers.teacher import Teacher

# Whose classes a file may name, beside those of plug-ins.
PARTS = "distill.models.students"
TEACHERS = "distill.models.teachers"


def untrained(settings: NetworkSettings) -> nn.Module:
    """The network of a run's settings or of a file, which may come from elsewhere, not trained."""
    if isinstance(settings, StudentSettings):
        encoder = without_weights(checked_node(settings.encoder))
        decoder = checked_node(settings.decoder.build)
        head = settings.head and checked_node(settings.head)
        return build_student(encoder, decoder, settings.channels, settings.global_statistics, head)
    assert isinstance(settings, GeneratorSettings)
    node = checked_node(settings.generator.build)
    return nodes.build(node, size=settings.side, in_channels=3, out_channels=settings.channels)


def checked_node(node: Node) -> Node:
    """The Node, once the class that it and every Node inside names is checked.

    Raises DistillError for a class outside of `PARTS` and plug-ins.
    """
    nodes.check_part(node, PARTS, nn.Module)
    inner = {k: checked_node(v) for k, v in node.items() if isinstance(v, dict) and "_target_" in v}
    if "encoder" in inner:
        inner["encoder"] = without_weights(inner["encoder"])
    return node | inner


def build_student(
    encoder: Node,
    decoder: Node,
    channels: int,
    statistics: Literal["none", "thumbnail"] = "none",
    head: Node | None = None,
) -> Student:
    """Encoder, decoder and head from their nodes, and what tells the decoder of the whole picture.

    With a head the decoder ends without its `activation`: it gives logits. Raises DistillError
    where one is the user's own and they do not give pictures.
    """
    encoder_module = nodes.part("encoder", encoder, nn.Module)
    if gaps := [name for name in ("channels", "strides") if not hasattr(encoder_module, name)]:
        raise DistillError(
            f"encoder: {type(encoder_module).__name__} has no `{gaps[0]}`, a list with a number "
            "for each of its features, the photo first"
        )
    last = None if head is None else nodes.part("head", head, Head)
    if last is not None and channels != 3:
        raise DistillError(f"channels={channels}: a head gives RGB; set channels=3 or head=picture")
    arguments = {"channels": encoder_module.channels, "strides": encoder_module.strides}
    arguments["out_channels"] = channels if last is None else last.channels
    out = nodes.part("decoder.build", decoder, nn.Module, **arguments)
    if last is not None:
        if not isinstance(getattr(out, "activation", None), nn.Module):
            raise DistillError(
                f"decoder: {type(out).__name__} has no `activation`, a module by which it ends, "
                "and so cannot give a head its logits; use head=picture"
            )
        out.activation = nn.Identity()
    whole = None if statistics == "none" else global_statistics(encoder_module, out)
    student = Student(encoder_module, out, whole, last)
    both = {"encoder": encoder, "decoder.build": decoder} | ({"head": head} if head else {})
    foreign = [
        f"{key}._target_={node['_target_']}" for key, node in both.items() if nodes.is_plugin(node)
    ]
    if foreign:
        try_network(" with ".join(foreign), student, channels)
    return student


def try_network(what: str, network: nn.Module, channels: int | None, multiple: int = 32) -> None:
    """Run a network once on 64 × 64 and on 64 × 96 pixels. Raises DistillError that begins `what`.

    `channels` None: any that pictures have. It is left in the mode that it was in, and so are
    torch's random numbers.
    """
    fixed, training, step = getattr(network, "fixed", None), network.training, lcm(32, multiple)
    low = step * -(-64 // step)
    with torch.random.fork_rng(devices=[]), torch.inference_mode():
        network.eval()
        for size in [fixed] if fixed else [(low, low), (low, low + step)]:
            photo = torch.rand(1, 3, *size)
            with of_the_user(f"{what}: a call with {form(photo)}"):
                output = network(photo)
            count = channels or channels_in(output)
            if problem := wrong_pictures(output, (1, count, *size)):
                raise DistillError(f"{what}: {problem}, for {tuple(photo.shape)}")
    network.train(training)


def without_weights(encoder: Node) -> Node:
    """An encoder's Node without weights of its own: all of them come from elsewhere.

    A network that is no student of ours has none.
    """
    return encoder | ({"weights": "none"} if encoder and nodes.takes(encoder, "weights") else {})


def load_teacher(style: StyleSettings, node: Node | None) -> Teacher:
    """The style's teacher with its weights found, verified and loaded.

    Raises DistillError where they cannot be had, for pairs of one's own, and before anything is
    imported for a teacher that a run names (`source_of`) and that may not be built.
    """
    if node is None:
        raise DistillError(
            f"style={style.name}: pairs of your own, there is no teacher; name one: style=NAME"
        )
    if "typed" in node:
        nodes.check_part(node, TEACHERS, Teacher)
        if not nodes.takes(node, "typed"):
            node = {key: value for key, value in node.items() if key != "typed"}
        nodes.bind("teacher", node, ("weights",))
    arguments = {}
    if style.file is not None or style.weights is not None:
        if nodes.takes(node, "weights"):
            file = WeightsFile(style.file or "", style.url, style.sha256, style.git_blob)
            arguments = {"weights": weights.find(file, style.weights, "style.weights")}
        elif style.weights:  # another teacher than the style's own
            raise DistillError(f"style.weights={style.weights}: this teacher takes none; leave it")
    elif nodes.takes(node, "weights") and not (node.get("weights") or nodes.is_plugin(node)):
        name = node["_target_"].rpartition(".")[2]
        raise DistillError(f"style.weights: missing; {name} needs them: style.weights=FILE")
    teacher: Teacher = nodes.part("teacher", node, Teacher, **arguments)
    if nodes.is_plugin(node):
        return trial(teacher, f"teacher._target_={node['_target_']}")
    return teacher


def trial(teacher: Teacher, what: str) -> Teacher:
    """A teacher of the user's own, frozen, once it has drawn. Raises DistillError."""
    if teacher.origin == Teacher.origin:  # it has said nothing better
        teacher.origin = what
    if teacher.freeze().timed and not teacher.by_name:
        try_network(what, teacher, 4 if teacher.transparent else None, teacher.multiple)
    return teacher


@torch.inference_mode()
def channels_of(teacher: Teacher) -> int:
    """Of a teacher's output: 1, 3 or 4, for a picture of the size that it takes, or a small one."""
    side = lcm(64, teacher.multiple)
    return channels_in(teacher(torch.rand(1, 3, *(teacher.fixed or (side, side)))))


def available_teacher(style: StyleSettings, node: Node | None) -> Teacher | None:
    """The same without a download: None where a published file would have to be fetched first."""
    file = WeightsFile(style.file or "", style.url, style.sha256, style.git_blob)
    if style.file and style.weights is None and weights.find_or_none(file) is None:
        return None
    return inference_teacher(style, node)


def inference_teacher(style: StyleSettings, node: Node | None) -> Teacher:
    """The teacher for inference on any picture. Raises DistillError as `load_teacher`, and for one
    that only has drawings of certain photos."""
    teacher = load_teacher(style, node)
    if teacher.by_name:
        raise DistillError(
            f"style={style.name}: its teacher is a folder of drawings and stylizes no photo"
        )
    return teacher
