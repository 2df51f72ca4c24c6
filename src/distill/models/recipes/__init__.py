"""What runs of each training recipe are: one object a recipe; commands register them."""

from distill.models.recipes.cyclegan_recipe import CycleGANRecipe
from distill.models.recipes.distil_recipe import DistilRecipe
from distill.models.recipes.pix2pix_recipe import Pix2PixRecipe

RECIPES = (DistilRecipe(), Pix2PixRecipe(), CycleGANRecipe())
