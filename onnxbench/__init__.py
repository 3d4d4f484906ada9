"""A bench for surgery on ONNX models and for debugging them."""

__version__ = "0.1.0"
