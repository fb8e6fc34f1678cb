"""Sarussi, Brutzkus & Globerson: linear teachers."""
