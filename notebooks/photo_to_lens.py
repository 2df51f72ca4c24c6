# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # From photos to a lens, in ten cells
#
# [![Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/OWNER/distill/blob/main/notebooks/photo_to_lens.ipynb)
#
# A teacher labels photographs, a student of 1.5 MB learns from the pairs, becomes one ONNX file and
# draws on a page that the camera feeds. Some five minutes on two CPU cores. For Jupyter and Colab:
# `jupytext --to notebook --update notebooks/photo_to_lens.py` makes `photo_to_lens.ipynb` of it.

# %%
import os
import subprocess
import sys
from pathlib import Path

from IPython.display import Image
from skimage import data, io

if "google.colab" in sys.modules:  # which has PyTorch already
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", "distill"], check=True)
# The shell finds the `distill` of this Python; a run of fewer steps than 600 draws less well.
os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
os.environ.setdefault("STEPS", "600")
io.imsave("cat.png", data.cat())

# %% [markdown]
# ## Pairs
#
# Six photographs that come with scikit-image and the built-in teacher `toon`: nothing is fetched.
# For your own photos and another style say `photos=DIR style=NAME` wherever `data=demo` stands.

# %% language="bash"
# distill prepare data=demo

# %% [markdown]
# ## A student
#
# Stopped at any time, the same command goes on. At its end it says how near the student came.

# %% language="bash"
# distill train data=demo trainer=demo trainer.max_steps=$STEPS encoder.weights=none run=notebook

# %%
Image(filename=sorted(Path("runs/notebook/previews").glob("*.png"))[-1])

# %% [markdown]
# ## One file, checked
#
# For operators, MACs, parameters, bytes, and that it draws what the checkpoint draws.

# %% language="bash"
# distill export run=notebook
# distill check runs/notebook/export/student.onnx

# %% [markdown]
# ## Against its teacher
#
# On the photograph that was held out.

# %% language="bash"
# distill eval_fid run=notebook features=none

# %%
Image(filename="runs/notebook/eval/contact_sheet.png")

# %% [markdown]
# ## Another picture
#
# Any file, folder or video, in its own size.

# %% language="bash"
# distill stylize cat.png run=notebook -o cat-notebook.png

# %%
Image(filename="cat-notebook.png")

# %% [markdown]
# ## Live
#
# A folder with the page, for any https host; `distill lens run=notebook` serves it here.

# %% language="bash"
# distill lens run=notebook serve=false output=lens-notebook
