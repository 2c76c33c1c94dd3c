"""The commands of the terminal, one file each. A command imports only what it needs."""
