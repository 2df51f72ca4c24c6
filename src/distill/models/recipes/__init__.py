"""What runs of each training recipe are: one object a recipe; commands register them."""

from distill.models.recipes.distil_recipe import DistilRecipe
from distill.models.recipes.gan_recipe import CycleGANRecipe, Pix2PixRecipe

RECIPES = (DistilRecipe(), Pix2PixRecipe(), CycleGANRecipe())
