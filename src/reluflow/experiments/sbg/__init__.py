"""Figures of Sarussi, Brutzkus & Globerson."""
