"""The OData service: dispatch of one request, or of the requests of a $batch."""
