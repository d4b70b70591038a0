"""What is served: discovery documents and OpenAPI. Imports http."""
