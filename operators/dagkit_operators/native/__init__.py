"""Scanning bytes in compiled C, with numpy where no compiler was found."""
