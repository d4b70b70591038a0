"""Pages over stores filled by hand."""
