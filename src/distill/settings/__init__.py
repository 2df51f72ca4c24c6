"""The settings of every command as plain typed values; conf/ holds their defaults and comments.

A `Node` names a class or function by `_target_` and gives its arguments.
"""

from distill.settings.adversarial import (
    Adversarial,
    CycleGANTrain,
    Generator,
    Paired,
    Pictures,
    Pix2PixTrain,
    Unpaired,
)
from distill.settings.base import Given, Name, Node, Positive, Settings
from distill.settings.drawing import Drawer, Stylize
from distill.settings.lens import Lens
from distill.settings.measuring import Benchmark, Check
from distill.settings.runs import EvalFid, Export, RunChoice
from distill.settings.sketching import PairsOf, Sketch
from distill.settings.training import (
    Budget,
    Data,
    Decoder,
    Labelling,
    Loss,
    Prepare,
    Source,
    Style,
    Train,
    Trainer,
)
