"""The audit chain (spec 12.4): security-relevant changes of the instance as a signed hash chain.

kinds    registry of the kinds of entries     chain    assigns positions to committed entries; signs heads
actors   the causes of entries                verify   finds changed, removed and inserted entries
record   writes an entry                      pruning  deletes old entries and keeps a signed stub
hashing  hashes and seals of entries          export   exports entries as lines of JSON, for a SIEM
"""
