"""What holds for several pages, or for all of them."""
