"""Runs JavaScript in confined processes: see `pool.SandboxPool`.

pool.py      who runs when                                                (web and background processes)
run.py       one run: the conversation, what it may cost, how it ends        "
process.py   one worker process: start, watch, kill, reap                    "
worker.py    the program that runs JavaScript                              (the confined process)
wire.py      its ends of the socket and of the console's memory               "
jobs.py      what a run is about, as the context takes it                     "
confinement.py  what that process gives up before it sees a script            "
prelude.js   the first code in every context                                  "
positions.py places in the author's source                                    "
protocol.py  frames between the two, errors.py and limits.py                (both sides)

This module imports nothing: the worker loads the package with the standard library alone.
"""
