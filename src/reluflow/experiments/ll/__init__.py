"""Figures and tables of Lyu, Li, Wang & Arora."""
