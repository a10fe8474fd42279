"""Language models and embedders: by name, their prices, and the built-in model that needs no key and no network."""
