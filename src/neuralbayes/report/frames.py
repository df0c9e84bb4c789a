"""The name under which other modules know how axes look."""

from neuralbayes.plot.style import quiet_frame

__all__ = ["quiet_frame"]
