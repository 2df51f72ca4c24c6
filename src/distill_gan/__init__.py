"""Networks that train against each other, as a plug-in: Pix2Pix and CycleGAN."""
