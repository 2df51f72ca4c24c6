"""The settings of every command as plain typed values; conf/ holds their defaults and comments.

A `Node` names a class or function by `_target_` and gives its arguments.
"""

from distill.config.settings.base import Given, Name, Node, Positive, Settings
from distill.config.settings.commands import (
    Benchmark,
    CheckSettings,
    Drawer,
    EvalFid,
    Export,
    Lens,
    RunChoice,
    Stylize,
)
from distill.config.settings.sketching import PairsOf, Sketch
from distill.config.settings.training import (
    Adversarial,
    Budget,
    CycleGANTrain,
    Data,
    Decoder,
    Generator,
    Labelling,
    Loss,
    Paired,
    PhotoSource,
    Pictures,
    Pix2PixTrain,
    Prepare,
    StyleSettings,
    Train,
    Trainer,
    Unpaired,
)
