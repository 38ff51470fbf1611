"""Runs JavaScript in confined processes: see `pool.SandboxPool`.

pool.py      the worker pool and its queue                              (web and background processes)
run.py       one run: protocol, limits, result                             "
process.py   one worker process: start, watch, kill, reap                  "
worker.py    the program that runs JavaScript                           (the confined process)
wire.py      the worker's socket and console memory                        "
jobs.py      converts a run's job for the JavaScript context               "
confinement.py  drops privileges before the first script                   "
../preludes/sandbox.js   first code of every context                       "
positions.py positions in the author's source                              "
protocol.py  frames between the two, errors.py and limits.py             (both sides)

This module imports nothing: the worker loads the package with the standard library alone.
"""
