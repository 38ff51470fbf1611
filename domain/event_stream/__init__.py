"""The change stream for other systems: committed changes with values, in commit order (spec 13, 13.5).

feed           positions in the change feed, and the entries after one
cloud_events   entries → CloudEvents, as far as a caller may read them
subscription   one subscriber: what it asked for, its position, and the framing of its response
hub            one thread of a process that reads for all of its subscribers
views          GET {api}/domain/events as Server-Sent Events and as long poll
asyncapi       the description of both
"""
