"""Figures and tables of Phuong & Lampert."""
