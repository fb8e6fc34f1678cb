"""Figures of Min, Mallada & Vidal."""
