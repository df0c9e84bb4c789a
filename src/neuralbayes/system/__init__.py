"""What the machine gives: files, memory, half precision."""
