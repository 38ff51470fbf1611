"""Tenants: many instances on one node, each in processes of its own, started when they are needed (spec 13, 13.6).

A tenant is a directory below settings.TENANTS (`directory`): its settings in `tenant.env` (`tenant_settings`), its data
in `data/`. The file `.owners` beside the tenants maps each host, port and database to its tenant. The pool (`pool`),
which `manage.py serve` runs, has loaded all code (`memory`) and opens no database. It listens on a loopback port for
each tenant (`pooled_tenant`), and starts and stops the processes (`runner`). A proxy forwards each host name to a port
(`proxies`).

    SUSPENDED ◀─ suspend, resume ─▶ STOPPED ──a connection, or due work──▶ RUNNING
    the pool answers 503 (`refusals`)  the pool listens          `process`: settings applied (`settings_change`),
                                          ▲                      then web server and worker as of any instance
                                          └───idle, or preempted───┘
                                              writes when its next work is due (`due_work`)

A command that creates, restores or deletes a tenant marks it as unfinished until it ends; the pool treats such a tenant
as a suspended one.

No other part of the platform knows tenants: a process serves one tenant only.
"""
