"""Files, memory, devices and half precision."""
