"""The training recipes of distill.train, one object each; commands register them."""

from distill.recipes.cyclegan_recipe import CycleGANRecipe
from distill.recipes.distil_recipe import DistilRecipe
from distill.recipes.pix2pix_recipe import Pix2PixRecipe

RECIPES = (DistilRecipe(), Pix2PixRecipe(), CycleGANRecipe())
