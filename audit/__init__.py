"""The audit chain (spec 12.4): who did what to the security of the instance, as a signed hash chain.

kinds      what kinds of entries there are          chain     gives committed entries their places; signed heads
actors     who is named as the cause                verify    finds what was changed, removed or inserted
record     writes an entry                          pruning   deletes old entries and keeps a signed stub
hashing    what is hashed and sealed                export    entries as lines of JSON, for a SIEM
"""
