"""Pages on results, and cards for notebooks; nothing here trains."""
