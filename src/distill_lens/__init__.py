"""The live page and <distill-lens>: students in the browser, a plug-in that comes with distill."""
