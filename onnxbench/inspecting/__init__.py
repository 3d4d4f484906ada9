"""What is in a model, what it costs, what is wrong with it."""
