"""`python -m tfyard` is `tfyard`."""

from tfyard.cli.main import main

main()
