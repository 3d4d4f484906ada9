"""Conversion of models between opsets, up and down."""
