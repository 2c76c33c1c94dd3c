"""Short-lived pods that mount claims of jobs, and what runs in them: TensorBoard and Jupyter."""
