"""Cut a part out of a model, as a model of its own."""
