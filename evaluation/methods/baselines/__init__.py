"""What the paper's other systems share."""
