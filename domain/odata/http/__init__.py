"""HTTP: URLs and views of the Domain API."""
