"""The style of one picture, by perceptual losses, as a plug-in: recipe=picture."""
