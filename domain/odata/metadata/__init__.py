"""Documents made from the model: $metadata, OpenAPI, plain JSON."""
