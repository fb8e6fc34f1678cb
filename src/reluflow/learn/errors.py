"""What a fit ends in when there is no classifier that can be vouched for."""

from __future__ import annotations

from ..problem import NotSeparable, Undecided


class NoCertificate(Undecided, ValueError):
    """The limit was not confirmed, or leaves points behind. ``partial`` holds what was found."""


class NoSeparator(NotSeparable, ValueError):
    """No linear classifier separates the samples; ``certificate`` proves it."""
