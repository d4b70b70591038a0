"""One module for each family of causes. A rule looks at a scene and gives a verdict, or None."""
