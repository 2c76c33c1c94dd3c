"""What a cluster says of its jobs; nothing here changes a job."""
