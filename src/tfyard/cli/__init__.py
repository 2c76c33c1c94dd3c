"""Who asks: the terminal. One file per command; what a command does not need, it does not import."""
