"""An index as a server for agents of other programs (Model Context Protocol)."""
