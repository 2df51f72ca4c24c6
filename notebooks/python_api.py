# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # distill in Python, in eight cells
#
# [![Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/OWNER/distill/blob/main/notebooks/python_api.ipynb)
#
# Stylize pictures, label photographs, train on them and on a DataLoader of your own, and export.
# Some minutes on two CPU cores. For Jupyter and Colab:
# `jupytext --to notebook --update notebooks/python_api.py` makes `python_api.ipynb` of it.

# %%
import os
import subprocess
import sys
from pathlib import Path

if "google.colab" in sys.modules:  # which has PyTorch already
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", "distill"], check=True)
import torch
from PIL import Image
from skimage import data
from torch.utils.data import DataLoader, TensorDataset

import distill

STEPS = int(os.environ.get("STEPS", 300))  # fewer draw less well

# %% [markdown]
# ## Stylize
#
# A student of the package: a PIL picture gives one, an array gives an array.

# %%
stylize = distill.load("hayao")
Image.fromarray(stylize(data.chelsea()))

# %% [markdown]
# ## Pairs
#
# The built-in teacher `toon` labels photographs that come with scikit-image.

# %%
Path("photos").mkdir(exist_ok=True)
for name in ("astronaut", "chelsea", "coffee", "rocket", "retina", "hubble_deep_field"):
    Image.fromarray(getattr(data, name)()).save(f"photos/{name}.png")
pairs = distill.label_photos("photos", "toon", out="pairs", style={"resolution": 128})

# %% [markdown]
# ## A student
#
# Run it again to resume.

# %%
run = distill.train_student(
    pairs, run="called", encoder={"weights": "none"}, loss="l1_sobel", trainer={"max_steps": STEPS}
)
Image.open(sorted(run.folder.glob("previews/*.png"))[-1])

# %% [markdown]
# ## A DataLoader of your own
#
# Here its pairs are noise and its negative: any two tensors of one size will do.

# %%
photos = torch.rand(16, 3, 64, 64)
loader = DataLoader(TensorDataset(photos, 1 - photos), batch_size=4)
own = distill.train_student(
    loader, val=loader, run="own", encoder={"weights": "none"}, loss="l1", trainer={"max_steps": 4}
)

# %% [markdown]
# ## One file, checked

# %%
files = distill.export_student(run, budget={"bytes": 1_500_000})
print(files)

# %% [markdown]
# ## Against its teacher
#
# On photographs that were held out.

# %%
scores = distill.evaluate_student(run, features="none")
scores["similarity"]["PSNR (dB), student to teacher"]

# %% [markdown]
# ## Another picture

# %%
distill.load(files["onnx"])(Image.fromarray(data.cat()))
