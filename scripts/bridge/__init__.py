"""The platform's API for scripts (spec 04, 4.2): `Domain`, `Transaction`, `Action`.

../preludes/bridge.js   the JavaScript side: proxies, value types, prefetching
bridge.py      the host's side: answers the prelude's calls against a dataset
calls/         the calls: reading, changing, action (`Action`); one function each, registered by registry.py
frames.py      serializes records as columns, and describes repositories
handles.py     entities that the script has received, and their changes since
queries.py     translates a script's filter to a $filter
loading.py     loads references and children of lists, with the caller's rights
writing.py     writes values of scripts into the dataset
actions.py     implements `Action`

Each attribute assignment is one host call, never batched: errors, and in the frontend model attribute events, must
occur at their statement. The script refers to entities by handles, numbers that are valid only for entities that it has
received, so it cannot reach hidden ones.
"""
