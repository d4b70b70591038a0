"""All changes: filter, page back in time, export."""
