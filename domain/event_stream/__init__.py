"""The change stream for other systems: committed changes with values, in commit order (spec 13, 13.5).

feed           positions in the change feed, and reading the entries after a position
cloud_events   entries that a caller may read → CloudEvents
subscription   one subscriber: its filter, its position, and the framing of its response
hub            one thread per process that reads for all of its subscribers
views          GET {api}/domain/events as Server-Sent Events and as long poll
asyncapi       the AsyncAPI document of both
"""
