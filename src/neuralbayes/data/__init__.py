"""Reading of images and tables, and toy data. No training."""
