"""Log lines of tasks as values: choice of lines, their position after a reconnection, metrics and tracebacks in
them. Pure: each backend fetches lines itself."""
