"""PDF: characters, words, lines, tables and titles of pages, from what PDFium draws."""
