"""Reduce a failing model to the nodes at fault: prove, record, search, confirm."""
