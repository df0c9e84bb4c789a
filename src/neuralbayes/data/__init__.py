"""Data in: images, toy manifolds and tables. Nothing here trains."""
