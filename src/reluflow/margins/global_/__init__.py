"""Bounds on the largest margin of any network."""
