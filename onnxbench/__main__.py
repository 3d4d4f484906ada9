"""`python -m onnxbench`."""

from onnxbench.cli import main

main()
