"""Many values of one job: which values are tried, what is done next, and the loop that does it.

search.py         grid and random; the protocol of a search      optuna_search.py  TPE and pruning, by Optuna
decide.py         one pure step of a sweep                       observing.py      what a job says of its trial
driver.py         save, then act: the loop over `Trials`, here and on a cluster
"""
