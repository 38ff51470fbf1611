"""What a script sees of the platform (spec 04, 4.2): `Domain`, `Transaction`, `Action`.

prelude.js     the script's half: proxies, value types, prefetching
bridge.py      the host's half: one run's view of a dataset, which answers the prelude's calls
calls/         the calls: reading, changing, acting (`Action`); one function each, named by registry.py
frames.py      records as columns, repositories as descriptions
handles.py     which entities the script knows, and what changed since it saw them
queries.py     a script's filter as a $filter
loading.py     references and children of whole lists, with the caller's rights
writing.py     values from the script into the dataset
actions.py     what `Action` does

Attribute sets go to the host at once, one call each, never in batches: an error has to come at its statement, and in
the frontend model so do attribute events and dependents. The script names entities by handles, small numbers that mean
something only for what it was shown, so that it cannot reach what its caller may not see.
"""
