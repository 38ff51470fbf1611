"""OData requests and responses, and the JSON in them."""
