"""What a person sees when a request broke."""
