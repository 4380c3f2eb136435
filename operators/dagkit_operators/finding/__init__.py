"""Finding the files to read, and dividing them into blocks."""
