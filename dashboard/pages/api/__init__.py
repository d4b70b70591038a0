"""What programs can read: an OpenAPI document and a page of it."""
