"""Word: documents in Office Open XML."""
