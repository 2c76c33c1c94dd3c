"""The page: jobs of clusters and runs of this machine in a browser. It asks by `Place` and `Jobs`, and draws what
`overview/` concludes.

`viewer.py` is one user with everything that was read for them; nothing in it is shown to another. `board.py` keeps
their jobs up to date, `details.py` what one job needs more, `feed.py` its log. `jobs_page.py`, `job_page.py`,
`compare_page.py` and `cluster_page.py` say what a page shows, `live.py` sends what has changed, `actions.py`
changes a job.
`security.py` decides which requests are answered, `sessions.py` whose they are: on loopback of one user
(`one_user.py`), in the cluster of many (`people.py`, `signing_in.py`). `app.py` puts it together.
"""
