"""OpenDocument: texts, sheets and slides of LibreOffice."""
