"""Lyu, Li, Wang & Arora: symmetric and separable data."""
