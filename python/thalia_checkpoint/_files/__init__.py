"""Files, open ones and those that are written, with their tensors as numpy has them."""
