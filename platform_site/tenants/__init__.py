"""Tenants: many instances on one node, each in processes of its own, started when they are needed (spec 13, 13.6).

A tenant is a directory below settings.TENANTS (`directory`): its settings in `tenant.env` (`tenant_settings`), its data
in `data/`; `.claims` beside the tenants says who has which host, port and database. The pool (`pool`), which `manage.py
serve` runs, has loaded all code (`memory`) and opens no database. It listens on a loopback port for each tenant
(`served`), whose processes it starts and stops (`runner`); a proxy leads host names to ports (`proxies`).

    SUSPENDED ◀─ suspend, resume ─▶ ASLEEP ──a connection, or due work──▶ RUNNING
    the pool answers 503 (`refusals`)  the pool listens          `process`: settings applied (`settings_change`),
                                          ▲                      then web server and worker as of any instance
                                          └───idle, or room needed───┘
                                              says when its next work is due (`due_work`)

Nothing else in the platform knows of tenants: a process serves one, and never another one.
"""
