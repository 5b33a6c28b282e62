"""A localizer as an ONNX graph: frames of raw sound in, scores of 360 directions out.

`graph` puts it together, `parts` lists what it needs of a prior or a model, `files` writes it.
"""
