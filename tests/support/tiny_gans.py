"""Tiny generators and discriminators, and a trainer for a few batches, to test recipes with."""

import pytorch_lightning as pl
import torch
from torch import nn
from torch.utils.data import Dataset

from distill.data.datamodule import DistillData
from distill.train import schedules
from distill_gan.adversarial import Adversary
from distill_gan.cyclegan import CycleGAN
from distill_gan.pix2pix import Pix2Pix

SIDE = 16


class TinyGenerator(nn.Module):
    """A generator of one convolution."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Conv2d(3, 3, 3, padding=1)

    def forward(self, photo):
        return torch.sigmoid(self.layer(photo))


class TinyDiscriminator(nn.Module):
    """A discriminator of one convolution."""

    def __init__(self, channels=3):
        super().__init__()
        self.layer = nn.Conv2d(channels, 1, 4)

    def forward(self, picture):
        return self.layer(picture)


class Squares(Dataset):
    """Random 8-bit pictures under the names that a recipe wants."""

    def __init__(self, names, count=6):
        generator = torch.Generator().manual_seed(1)
        self.names = names
        self.pictures = torch.randint(
            0, 256, (count, len(names), SIDE, SIDE, 3), generator=generator, dtype=torch.uint8
        )

    def __len__(self):
        return len(self.pictures)

    def __getitem__(self, position):
        row = self.pictures[position % len(self)]
        return {**dict(zip(self.names, row, strict=True)), "name": str(position)}


def pix2pix(adversary=None, schedule=schedules.constant, lr=0.01, **given):
    shared = _shared(adversary or Adversary(), schedule, lr)
    return Pix2Pix(TinyGenerator(), TinyDiscriminator(6), **shared, **given)


def cyclegan(adversary=None, schedule=schedules.constant, lr=0.01, **given):
    networks = TinyGenerator(), TinyGenerator(), TinyDiscriminator(), TinyDiscriminator()
    return CycleGAN(*networks, **_shared(adversary or Adversary("lsgan"), schedule, lr), **given)


def _shared(adversary, schedule, lr):
    """What the modules of both recipes take."""

    def adam(parameters, lr):
        return torch.optim.Adam(parameters, lr, betas=(0.5, 0.999))

    return {
        "adversary": adversary, "make_optimizer": adam, "make_schedule": schedule, "lr": lr,
    }  # fmt: skip


def data_for(module, count=6):
    """Pictures to train the module on, `count`, and two to validate it on."""
    names = ("photo", "target") if isinstance(module, Pix2Pix) else ("a", "b")
    return DistillData(Squares(names, count), Squares(names, 2), batch_size=1, workers=0)


def fit(module, steps, *callbacks, folder=".", plugins=()):
    """Lightning over `steps` batches on the CPU; gives the trainer."""
    trainer = pl.Trainer(
        accelerator="cpu",
        max_steps=steps,
        max_epochs=-1,
        callbacks=list(callbacks),
        plugins=list(plugins),
        val_check_interval=steps,
        check_val_every_n_epoch=None,
        num_sanity_val_steps=0,
        log_every_n_steps=1,
        enable_progress_bar=False,
        enable_model_summary=False,
        enable_checkpointing=False,
        use_distributed_sampler=False,
        logger=False,
        default_root_dir=folder,
    )
    trainer.fit(module, data_for(module))
    return trainer


def values(networks):
    """Copies of all parameters."""
    return [p.detach().clone() for network in networks for p in network.parameters()]


def gradients(networks):
    """Copies of all parameters' gradients, None where there is none."""
    return [
        None if p.grad is None else p.grad.clone()
        for network in networks
        for p in network.parameters()
    ]


def same(a, b):
    """Whether two lists of tensors or Nones are equal, to the last bit."""
    return all((x is None and y is None) or torch.equal(x, y) for x, y in zip(a, b, strict=True))
