"""Networks and their building blocks."""
