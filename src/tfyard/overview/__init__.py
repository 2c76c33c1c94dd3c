"""What a person wants to know of a job, from plain values; terminal, page and Python only draw it."""
