"""Data in: toy manifolds and tables. Nothing here trains."""
