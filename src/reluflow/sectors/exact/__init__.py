"""Exact arithmetic."""
