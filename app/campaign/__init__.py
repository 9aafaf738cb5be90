"""One question asked of many recordings: a study file becomes jobs, an engine does them, a folder keeps them.

study.py     the study file, read and checked as a whole
jobs.py      what is to be done, one job for each fit, each under a key of its content
work.py      one job done: recording in, result out
child.py     a process that does jobs one after the other and may be killed at any time
engine.py    the one adapter: a pool of such processes; dask_engine.py: the same on a Dask cluster
store.py     the folder of results: every finished job at once, under its key
calls.py     the program's own studies: any function called many times by the same engines
run.py       the loop: what is missing is done, what is done is kept
table.py     one row for each job, as CSV and Parquet
summary.py   what the recordings say together; page.py puts it on one HTML page
"""
