"""How a run looks: live on a terminal, as plain lines elsewhere, or as JSON for scripts."""
