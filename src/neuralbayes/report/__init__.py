"""Pictures from results; nothing here trains."""
