"""The execution of one slot in one window, with the board over which slots hand work over."""
