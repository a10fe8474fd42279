"""Language models and embedders by name, their prices, and the built-in model, which needs no key or network."""
