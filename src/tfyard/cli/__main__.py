"""`python -m tfyard.cli`, for places where the command is not on the path."""

from tfyard.cli.main import main

main()
