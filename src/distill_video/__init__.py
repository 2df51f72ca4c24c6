"""Videos as files of distill.stylize: a plug-in that comes with distill."""
