"""Output of a run: live on a terminal, plain lines elsewhere, or JSON for scripts."""
