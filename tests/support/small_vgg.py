"""A random VGG in small, for the losses that read one."""

from torch import nn

from distill.losses.vgg import VGGFeatures


def small_vgg() -> VGGFeatures:
    """Two layers to read and one beyond them to cut off."""
    layers = [
        nn.Conv2d(3, 8, 3, padding=1),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 12, 3, padding=1),
        nn.ReLU(inplace=True),
        nn.Conv2d(12, 99, 1),
    ]
    return VGGFeatures(nn.Sequential(*layers), {"first": 1, "second": 4})
