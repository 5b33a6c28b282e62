"""A localizer as an ONNX graph: frames of raw sound in, scores of 360 directions out.

`graph` puts it together: `features`, then the `network` of a prior, then the `learner` behind it. `builder`
writes the nodes down.
"""
