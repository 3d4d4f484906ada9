"""Whose process this is: the command line's own, or a program's that uses onnxbench."""

#: Whether nothing but the command line runs here. It may then be copied to make a worker process.
is_own = False
