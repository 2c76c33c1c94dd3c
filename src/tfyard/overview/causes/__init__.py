"""Why a job waits or has failed: a file per family of causes. Each looks at the evidence and says what it
finds, and none guesses."""
