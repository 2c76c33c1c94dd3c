"""The answers to questions about a job, from plain values; terminal, page and Python only show them."""
