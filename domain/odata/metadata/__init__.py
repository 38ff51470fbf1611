"""Documents of the model: $metadata, OpenAPI, plain JSON."""
