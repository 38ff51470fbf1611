"""SCIM 2.0 (RFC 7643 and 7644): a company's directory creates, changes and deactivates users, and assigns roles.

views > users, groups > patches, conditions > filters, resources
"""
