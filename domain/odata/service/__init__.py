"""The OData service: the steps and flows of a request, and of the requests of a $batch."""
