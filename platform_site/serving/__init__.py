"""Serves the instance: `manage.py serve` prepares it, starts web server and worker, watches them and stops them.

The supervisor (`children`, `preparation`, `console`, `service_manager`) loads all code, then forks the processes. A web
process is granian (`granian_server`) with its own socket (`listening`, `connection_balance`) and three modules of this
package:

    connection ──head──▶ receiving ──complete──▶ scheduler ──slot──▶ application ──▶ response
                 body ──▶  (bodies)   request      (callers)           (connection_pool)

States of a request:

    ARRIVING   `receiving`: the server has its head and collects the body; no thread, at most 64 KB of memory
       │ complete                                  too slow, too long ──▶ refused (408, 413)
    QUEUED     `scheduler`: in the queue of its caller  too many queued ──▶ refused (429), client gone ──▶ dropped
       │ next of the next caller
    EXECUTING  holds the slot of the process; one thread, database connections of the pool
       │ 30 ms while others wait            │ waits for a script or an HTTP response
    PREEMPTED  goes on, defers to holders   OUTSIDE  does not count among the running requests of its caller
       └──────────────┬─────────────────────┘
    ANSWERED   the thread takes the next request; a piped response has a thread of its own (`pipes`), a pushed one none
               (`pushes`)
"""
