"""Fold a model: fewer nodes, the same numbers."""
