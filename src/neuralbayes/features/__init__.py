"""Features without labels, of rows and of images."""
